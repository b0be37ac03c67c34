import { type IPAMClaim, claimOwnerOf } from '../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import { type KubeObject, joinKey } from '../../../api/meta.js';
import { type NetworkConfig, parseNetworkConfig } from '../../../api/network-attachment.js';
import type { Lister } from '../../../kube/cache.js';
import { messageOf } from '../../../kube/errors.js';
import type { Resource } from '../../../kube/resource.js';
import {
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../../kube/resources.js';
import { type ClusterView, type Recheck, recheckKey } from '../../../cluster/cluster-view.js';
import { type PersistentIPsGate, isNamespaceServed } from '../../../cluster/persistent-ips-gate.js';
import type { ParsedNad } from '../../../cluster/transforms.js';
import type { ReadCache } from './read-cache.js';

export interface ReadCacheViewOptions {
  readonly namespace: string;
  readonly reads: ReadCache;
  readonly networks: Pick<Lister<ParsedNad>, 'get'>;
  readonly gate: PersistentIPsGate;
  /** Ignores reads before this time, in the clock's ms. */
  readonly since: number;
  /** Rechecked objects must have been read at or after this time, in the clock's ms. */
  readonly now: number;
}

/** A namespace as recent live reads have shown it, with NADs from the watch. Create one for each decision. */
export class ReadCacheView implements ClusterView {
  lookupFailure: string | undefined;
  readonly #options: ReadCacheViewOptions;
  readonly #failures = new Map<string, unknown>();

  constructor(options: ReadCacheViewOptions) {
    this.#options = options;
  }

  /** Ignores the opt-out of the namespace, which is read only if the decision depends on it. */
  get allowsNewClaims(): boolean {
    const { namespace, gate } = this.#options;
    return isNamespaceServed(namespace, gate, '');
  }

  vmi(name: string): VirtualMachineInstance | undefined {
    return this.#get(VIRTUAL_MACHINE_INSTANCES, this.#key(name));
  }

  vm(name: string): VirtualMachine | undefined {
    return this.#get(VIRTUAL_MACHINES, this.#key(name));
  }

  claim(name: string): IPAMClaim | undefined {
    return this.#get(IPAM_CLAIMS, this.#key(name));
  }

  /** Returns the claims that were read. If a certain claim is needed, recheck its name. */
  claimsOf(ownerUid: string): readonly IPAMClaim[] {
    const { reads, since, namespace } = this.#options;
    const claims = reads.list(IPAM_CLAIMS, since);
    return claims.filter((claim) => claim.metadata.namespace === namespace && claimOwnerOf(claim)?.uid === ownerUid);
  }

  network(key: string): NetworkConfig | undefined {
    const watched = this.#options.networks.get(key);
    if (watched !== undefined) return watched.config;
    const seen = this.#get(NETWORK_ATTACHMENT_DEFINITIONS, key);
    return seen && parseNetworkConfig(seen);
  }

  /** Whether the object was read, found or not, or the read failed. */
  hasRead(recheck: Recheck): boolean {
    const { resource, key } = this.#target(recheck);
    const { reads, now } = this.#options;
    return this.#failures.has(recheckKey(recheck)) || reads.get(resource, key, now) !== undefined;
  }

  /** Never rejects. */
  async read(recheck: Recheck, signal: AbortSignal): Promise<void> {
    const { resource, key } = this.#target(recheck);
    try {
      await this.#options.reads.read(resource, key, signal);
    } catch (error) {
      this.#failures.set(recheckKey(recheck), error);
      this.lookupFailure ??= messageOf(error);
    }
  }

  /** Returns the error of a recheck that failed. */
  failureOf(rechecks: readonly Recheck[]): unknown {
    const failed = rechecks.find((recheck) => this.#failures.has(recheckKey(recheck)));
    return failed && this.#failures.get(recheckKey(failed));
  }

  #get<T extends KubeObject>(resource: Resource<T>, key: string): T | undefined {
    const { reads, since } = this.#options;
    return reads.get(resource, key, since)?.object;
  }

  #target({ kind, key }: Recheck): { resource: Resource; key: string } {
    switch (kind) {
      case 'vmi':
        return { resource: VIRTUAL_MACHINE_INSTANCES, key: this.#key(key) };
      case 'vm':
        return { resource: VIRTUAL_MACHINES, key: this.#key(key) };
      case 'claim':
        return { resource: IPAM_CLAIMS, key: this.#key(key) };
      case 'network':
        return { resource: NETWORK_ATTACHMENT_DEFINITIONS, key };
    }
  }

  #key(name: string): string {
    return joinKey(this.#options.namespace, name);
  }
}
