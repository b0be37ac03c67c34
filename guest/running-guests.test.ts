import { expect } from 'chai';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { CLAIM_GUEST_MAC, CLAIM_MAC_SINCE, DEFAULT_ROUTE_ANNOTATION } from '../api/names.js';
import type { IPAMClaim } from '../api/ipam-claim.js';
import { CLAIM_INDEXES } from '../cluster/watch-specs.js';
import { Cache } from '../kube/informers/cache.js';
import { adminPool, nad } from '../test/objects/pool-objects.js';
import { claim, vmReference, vmi } from '../test/objects/workload-objects.js';
import type { ParsedNad } from '../cluster/transforms.js';
import type { AddressPool } from '../api/address-pool.js';
import { PoolDirectory } from '../addressing/directory/directory.js';
import { NETWORK_INDEXES } from '../addressing/directory/affected.js';
import { runAtOnce } from '../kube/run-in-slices.js';
import { type FoundGuests, type GuestCaches, findGuests } from './running-guests.js';

const MAC = '02:00:00:00:00:0a';
const OTHER = '02:00:00:00:00:0b';
const LAYER2 = { name: 'data', type: 'bridge', allowPersistentIPs: true };
const GUEST = { attachment: 'data', dhcp: {} };

interface VmGiven {
  /** The name of the VM. */
  name?: string;
  namespace?: string;
  /** The CNI network, whose NAD has its name. */
  network?: string;
  /** The MAC address on the claim; null: none. */
  recorded?: string | null;
  /** The MAC address in the spec of the VMI. */
  specified?: string;
  /** That of libvirt's domain. */
  reported?: string;
  phase?: string;
  created?: string;
  annotations?: Record<string, string>;
  /** The VMI is one of another VM. */
  isForeign?: boolean;
}

/** The caches of a responder, with pool `data` on NAD `vms/data`. */
class World implements GuestCaches {
  readonly claims = new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES });
  readonly vmis = new Cache<VirtualMachineInstance>();
  readonly networks = new Cache<ParsedNad>();
  readonly pools = new Cache<AddressPool>();
  readonly directory = new PoolDirectory({ pools: this.pools, networks: this.networks });

  constructor() {
    this.setPool({});
    this.setNad('vms/data', LAYER2);
  }

  setPool(more: object, name = 'data'): void {
    const subnets = [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1' }];
    this.pools.set(adminPool(name, { network: 'data', subnets, guest: GUEST, ...more }));
    this.directory.changed();
  }

  setNad(key: string, config: object): void {
    this.networks.set(nad(key, config));
    this.directory.changed();
  }

  run(given: VmGiven = {}): void {
    this.claims.set(claimFor(given));
    this.vmis.set(vmiFor(given));
  }

  found(network = 'data'): FoundGuests {
    return runAtOnce(findGuests(network, this));
  }

  served(network?: string): string[] {
    return this.found(network).served.map(({ claim: { metadata }, mac }) => `${metadata.name} ${mac}`);
  }

  refused(): { claim: string; reason: string; message: string }[] {
    return this.found().refused.map(({ claim: { metadata }, reason, message }) => ({
      claim: metadata.name,
      reason,
      message,
    }));
  }
}

function uidOf({ name = 'vm1', namespace = 'vms' }: VmGiven): string {
  return `${namespace}-${name}-uid`;
}

function claimFor(given: VmGiven): IPAMClaim {
  const { name = 'vm1', namespace = 'vms', network = 'data', recorded = MAC } = given;
  const { created = '2026-01-01T00:00:00Z' } = given;
  const owner = vmReference(uidOf(given), name);
  const made = claim({ name: `${name}.data`, network, nad: `vms/${network}`, owner, created, ips: ['10.1.0.5/24'] });
  made.metadata.namespace = namespace;
  if (recorded !== null) made.metadata.annotations = { ...made.metadata.annotations, [CLAIM_GUEST_MAC]: recorded };
  return made;
}

function vmiFor(given: VmGiven): VirtualMachineInstance {
  const { name = 'vm1', namespace = 'vms', network = 'data', annotations = {}, reported, phase = 'Running' } = given;
  const made = vmi({ data: `vms/${network}` }, { name, vm: given.isForeign === true ? 'other-uid' : uidOf(given) });
  made.metadata = { ...made.metadata, namespace, annotations };
  setMac(made, given.specified ?? (reported === undefined ? MAC : ''));
  const interfaces = reported === undefined ? [] : [{ name: 'data', mac: reported, infoSource: 'domain' }];
  return { ...made, status: { phase, interfaces } };
}

function setMac({ spec }: VirtualMachineInstance, macAddress: string): void {
  for (const each of spec?.domain?.devices?.interfaces ?? []) each.macAddress = macAddress;
}

describe('the guests of a layer-2 network', () => {
  let world: World;
  beforeEach(() => {
    world = new World();
  });

  it('are served by the MAC address of their VMI’s spec', () => {
    world.run();
    expect(world.served()).to.deep.equal([`vm1.data ${MAC}`]);
  });

  it('are served by the MAC address of libvirt’s domain if the spec has none', () => {
    world.run({ reported: OTHER, recorded: OTHER });
    expect(world.served()).to.deep.equal([`vm1.data ${OTHER}`]);
  });

  const unserved: { name: string; given?: VmGiven; change?: (world: World) => void }[] = [
    { name: 'whose VM has stopped', change: ({ vmis }) => vmis.delete('vms/vm1') },
    { name: 'that has ended', given: { phase: 'Succeeded' } },
    { name: 'whose VMI is that of another VM', given: { isForeign: true } },
    { name: 'whose MAC address the controller has not recorded', given: { recorded: null } },
    { name: 'whose claim was restored with an earlier MAC address', given: { recorded: OTHER } },
    {
      name: 'on a NAD with an IPAM, where KubeVirt answers',
      change: (changed) => changed.setNad('vms/data', { ...LAYER2, ipam: { type: 'holdfast' } }),
    },
    {
      name: 'of a plugin that assigns addresses itself',
      change: (changed) => changed.setNad('vms/data', { ...LAYER2, type: 'ovn-k8s-cni-overlay' }),
    },
    { name: 'of a pool without DHCP', change: (changed) => changed.setPool({ guest: {} }) },
    {
      name: 'of a pool that does not serve its namespace',
      change: (changed) => changed.setPool({ namespaces: ['x'] }),
    },
  ];
  for (const { name, given, change } of unserved) {
    it(`do not include one ${name}`, () => {
      world.run(given);
      change?.(world);
      expect(world.served()).to.deep.equal([]);
    });
  }

  it('have the default route on the first network with a gateway, unless the VM says otherwise', () => {
    world.run();
    world.run({ name: 'vm2', specified: OTHER, recorded: OTHER, annotations: { [DEFAULT_ROUTE_ANNOTATION]: 'none' } });
    // a pod network comes first
    const routes = world.found().served.map(({ hasDefaultRoute }) => hasDefaultRoute);
    expect(routes).to.deep.equal([false, false]);
    world.run({ annotations: { [DEFAULT_ROUTE_ANNOTATION]: 'data' } });
    expect(world.found().served.map(({ hasDefaultRoute }) => hasDefaultRoute)).to.include(true);
  });

  it('have one owner of each MAC address: the oldest claim, also of another namespace', () => {
    world.run({ name: 'vm2', created: '2026-01-02T00:00:00Z' });
    world.run({ name: 'vm3', namespace: 'other', created: '2026-01-03T00:00:00Z' });
    world.run();
    expect(world.served()).to.deep.equal([`vm1.data ${MAC}`]);
    const refused = world.refused();
    expect(refused.map(({ claim: name, reason }) => `${name} ${reason}`)).to.deep.equal([
      'vm2.data MACAddressConflict',
      'vm3.data MACAddressConflict',
    ]);
    expect(refused[0]?.message).to.include('IPAMClaim vms/vm1.data');
    expect(refused[1]?.message, 'names no object of another tenant').not.to.include('vm1');
  });

  it('keep their answers although a tenant gives their MAC address to a VM with an older claim', () => {
    world.run({ created: '2026-01-02T00:00:00Z' });
    world.run({ name: 'vm2', namespace: 'other' });
    const [older] = world.claims.inNamespace('other');
    const since = `${MAC} 2026-01-03T00:00:00Z`;
    world.claims.set({
      ...older!,
      metadata: { ...older!.metadata, annotations: { ...older!.metadata.annotations, [CLAIM_MAC_SINCE]: since } },
    });
    expect(world.served()).to.deep.equal([`vm1.data ${MAC}`]);
    expect(world.refused().map(({ claim: name, reason }) => `${name} ${reason}`)).to.deep.equal([
      'vm2.data MACAddressConflict',
    ]);
  });

  it('have one owner of each MAC address although their networks share a bridge', () => {
    world.setNad('vms/data', { ...LAYER2, bridge: 'br0' });
    world.setNad('vms/green', { ...LAYER2, name: 'green', bridge: 'br0' });
    world.setPool({ network: 'green', subnets: [{ cidr: '10.2.0.0/24' }] }, 'green');
    world.run({ created: '2026-01-02T00:00:00Z' });
    world.run({ name: 'vm2', network: 'green' });
    expect(world.served()).to.deep.equal([]);
    expect(world.refused().map(({ claim: name, reason }) => `${name} ${reason}`)).to.deep.equal([
      'vm1.data MACAddressConflict',
    ]);
    expect(world.served('green')).to.deep.equal([`vm2.data ${MAC}`]);
    world.setPool({ network: 'green', subnets: [{ cidr: '10.2.0.0/24' }], guest: {} }, 'green');
    expect(world.served(), 'nobody answers on the other network').to.deep.equal([`vm1.data ${MAC}`]);
  });

  for (const phase of ['', 'Pending', 'Scheduling', 'WaitingForSync', 'Succeeded', 'Failed']) {
    it(`keep their MAC address although a VM with an older claim has it, whose VMI has no domain in phase "${phase}"`, () => {
      world.run({ name: 'vm2', namespace: 'other', phase });
      world.run({ created: '2026-01-02T00:00:00Z' });
      expect(world.served()).to.deep.equal([`vm1.data ${MAC}`]);
      expect(world.refused()).to.deep.equal([]);
    });
  }

  for (const phase of ['Scheduled', 'Running', 'Unknown']) {
    it(`are served in phase ${phase}, in which libvirt may have a domain`, () => {
      world.run({ phase });
      expect(world.served()).to.deep.equal([`vm1.data ${MAC}`]);
    });
  }

  it('have one owner of each MAC address although two pools serve the network', () => {
    world.setPool({ namespaces: ['vms'] });
    world.setPool({ namespaces: ['other'], cidr: undefined, subnets: [{ cidr: '10.2.0.0/24' }] }, 'second');
    world.run();
    world.run({ name: 'vm2', namespace: 'other', created: '2026-01-02T00:00:00Z' });
    expect(world.served()).to.deep.equal([`vm1.data ${MAC}`]);
  });

  it('are refused with a condition while their MAC address is unknown, as of SR-IOV interfaces', () => {
    world.run({ specified: '', recorded: null });
    expect(world.refused().map(({ reason }) => reason)).to.deep.equal(['MACAddressUnknown']);
    expect(world.refused()[0]?.message).to.include('set macAddress');
  });

  for (const mac of ['01:00:5e:00:00:01', 'ff:ff:ff:ff:ff:ff', '00:00:00:00:00:00']) {
    it(`are refused with the MAC address ${mac}, which no interface can have`, () => {
      world.run({ specified: mac, recorded: mac });
      expect([world.served(), world.refused().map(({ reason }) => reason)]).to.deep.equal([[], ['MACAddressUnknown']]);
    });
  }

  it('are found in steps of one VM each, so that many VMs do not hold up the process', () => {
    for (const name of ['vm1', 'vm2', 'vm3']) world.run({ name });
    expect([...findGuests('data', world)]).to.have.length.of.at.least(3);
  });

  it('keep their answers if a user deletes the claim while the VM runs', () => {
    world.run();
    const [made] = world.claims.list();
    if (made === undefined) throw new Error('no claim');
    world.claims.set({ ...made, metadata: { ...made.metadata, deletionTimestamp: '2026-01-05T00:00:00Z' } });
    expect(world.served()).to.deep.equal([`vm1.data ${MAC}`]);
  });
});
