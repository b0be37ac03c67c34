import type { IPAMClaim } from '../api/ipam-claim.js';
import { joinKey } from '../api/meta.js';
import { CLAIM_VM_NETWORK } from '../api/names.js';
import { isForVmNetwork, isOwnedBy, servedVmNetwork, unnotedClaimNames } from '../api/vm-claims.js';
import type { ClusterView } from './cluster-view.js';
import type { VmiNetwork, Workload } from './workload.js';

interface ClaimTables {
  /** By the network of the VM's spec in their annotation. */
  readonly byNetwork: ReadonlyMap<string, readonly IPAMClaim[]>;
  /** Claims of kubevirt/ipam-extensions, which have no such annotation. */
  readonly byName: ReadonlyMap<string, IPAMClaim>;
}

/**
 * The claims of a workload by the network of its spec. Reads them once: a tenant decides how many networks and claims there are, and each of them
 * must cost the same.
 */
export class OwnedClaims {
  readonly #workload: Workload;
  readonly #view: Pick<ClusterView, 'claimsOf' | 'network'>;
  #claims: ClaimTables | undefined;
  /** The networks by the names that claims without an annotation may have. */
  #networks: ReadonlyMap<string, readonly VmiNetwork[]> | undefined;
  /** By the name of such a claim: the network that it serves among those of its CNI network. */
  readonly #served = new Map<string, string | undefined>();

  constructor(workload: Workload, view: Pick<ClusterView, 'claimsOf' | 'network'>) {
    this.#workload = workload;
    this.#view = view;
  }

  /** Returns the claims that serve a network of the VM's spec, of all CNI networks. */
  of(network: VmiNetwork): IPAMClaim[] {
    const { byNetwork, byName } = (this.#claims ??= this.#readClaims());
    const unnoted = unnotedClaimNames(this.#workload.owner.name, network.name).flatMap(
      (name) => byName.get(name) ?? [],
    );
    return [...(byNetwork.get(network.name) ?? []), ...unnoted.filter((claim) => this.isServing(claim, network))];
  }

  /** True if the claim is for this network of the VM's spec, and not for another one to which kubevirt/ipam-extensions gave the same name. */
  isServing(claim: IPAMClaim, network: VmiNetwork): boolean {
    const { owner, networks } = this.#workload;
    if (!isForVmNetwork(claim, owner.name, network.name)) return false;
    if (claim.metadata.annotations?.[CLAIM_VM_NETWORK] !== undefined) return true;
    const best = this.#bestNetwork(claim);
    const both = networks.filter((each) => each === network || each.name === best);
    return servedVmNetwork(claim, owner.name, both) === network.name;
  }

  #bestNetwork(claim: IPAMClaim): string | undefined {
    const { name } = claim.metadata;
    if (this.#served.has(name)) return this.#served.get(name);
    this.#networks ??= networksByClaimName(this.#workload);
    const beside = (this.#networks.get(name) ?? []).filter((network) => this.#isOn(claim.spec.network, network));
    const best = servedVmNetwork(claim, this.#workload.owner.name, beside);
    this.#served.set(name, best);
    return best;
  }

  #isOn(cniNetwork: string, { nad, isUnplugRequested }: VmiNetwork): boolean {
    const config = isUnplugRequested ? undefined : this.#view.network(joinKey(nad.namespace, nad.name));
    return config?.ok === true && config.network.name === cniNetwork;
  }

  #readClaims(): ClaimTables {
    const byNetwork = new Map<string, IPAMClaim[]>();
    const byName = new Map<string, IPAMClaim>();
    const { owner } = this.#workload;
    for (const claim of this.#view.claimsOf(owner.uid)) {
      if (!isOwnedBy(claim, owner)) continue;
      const vmNetwork = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
      if (vmNetwork === undefined) byName.set(claim.metadata.name, claim);
      else append(byNetwork, vmNetwork, claim);
    }
    return { byNetwork, byName };
  }
}

function networksByClaimName({ owner, networks }: Workload): Map<string, VmiNetwork[]> {
  const found = new Map<string, VmiNetwork[]>();
  for (const network of networks)
    for (const name of unnotedClaimNames(owner.name, network.name)) append(found, name, network);
  return found;
}

function append<T>(groups: Map<string, T[]>, key: string, item: T): void {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [item]);
  else group.push(item);
}
