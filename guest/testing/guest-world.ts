import type { AddressPool, GuestOptions, PoolSubnet } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VmInterface, VmNetwork, VmVolume, VmiSpec } from '../../api/kubevirt.js';
import { CLAIM_INDEXES } from '../../cluster/watch-specs.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import { Cache } from '../../kube/informers/cache.js';
import { adminPool, nad } from '../../test/objects/pool-objects.js';
import { NAMESPACE, claim } from '../../test/objects/workload-objects.js';
import { CachedGuestView } from '../cached-view.js';
import type { GuestWorkload } from '../interfaces.js';

/** The caches of this process in memory, with the layer-2 networks of one VM, `vm1`. */
export class GuestWorld {
  readonly claims = new Cache<IPAMClaim>(CLAIM_INDEXES);
  readonly networks = new Cache<ParsedNad>();
  readonly pools = new Cache<AddressPool>();
  readonly directory = new PoolDirectory({ pools: this.pools, networks: this.networks });
  allowsNewClaims = true;

  get view(): CachedGuestView {
    return new CachedGuestView(NAMESPACE, this, this.allowsNewClaims);
  }

  /** Adds a pool with `spec.guest` and its NAD `vms/<network>` without IPAM. */
  addNetwork(network: string, subnets: PoolSubnet[], guest: GuestOptions = {}, config: object = {}): void {
    this.pools.set(adminPool(network, { network, subnets, guest }));
    this.addNad(network, { name: network, type: 'bridge', allowPersistentIPs: true, ...config });
  }

  addNad(name: string, config: object): void {
    this.networks.set(nad(`${NAMESPACE}/${name}`, config));
    this.directory.changed();
  }

  /** Adds the claim of network `vmNetwork` of vm1, whose CNI network has the same name unless `network` names another one. */
  addClaim(vmNetwork: string, ips: string[], options: { network?: string; created?: string } = {}): IPAMClaim {
    const { network = vmNetwork, created = '2026-01-01T00:00:00Z' } = options;
    const name = `vm1.${vmNetwork}`;
    const made = claim({ name, vmNetwork, network, nad: `${NAMESPACE}/${network}`, ips, created });
    made.metadata = { ...made.metadata, uid: `${name}-uid`, resourceVersion: '1' };
    this.claims.set(made);
    return made;
  }
}

/** An interface of a VM: its network and, unless it is `pod`, the NAD. */
export interface GivenInterface extends Omit<VmInterface, 'name'> {
  name: string;
  nad: string;
}

export function guestSpec(interfaces: readonly GivenInterface[], volumes?: VmVolume[]): VmiSpec {
  const networks = interfaces.map(({ name, nad: networkName }): VmNetwork =>
    networkName === 'pod' ? { name, pod: {} } : { name, multus: { networkName } },
  );
  const devices = interfaces.map(({ nad: _nad, ...rest }) => rest);
  return { networks, domain: { devices: { interfaces: devices } }, ...(volumes && { volumes }) };
}

export function guestWorkload(spec: VmiSpec): GuestWorkload {
  return { namespace: NAMESPACE, owner: { kind: 'VirtualMachine', name: 'vm1', uid: 'vm-uid' }, spec };
}
