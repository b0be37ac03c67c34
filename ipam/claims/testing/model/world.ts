import type { AddressLease } from '../../../../api/address-lease.js';
import type { AddressPool } from '../../../../api/address-pool.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import type { Pod } from '../../../../api/pod.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, IPAM_CLAIMS, PODS } from '../../../../kube/resources.js';
import { ObjectWorld } from '../../../../test/object-tracker/object-world.js';

export interface Objects {
  ipamclaims: IPAMClaim;
  addressleases: AddressLease;
  addresspools: AddressPool;
  pods: Pod;
}
export type Kind = keyof Objects;
export const KINDS: readonly Kind[] = ['ipamclaims', 'addressleases', 'addresspools', 'pods'];

/** The objects of a cluster with claims, leases and pools, and its clock. */
export class IpamWorld extends ObjectWorld<Objects> {
  /** Milliseconds since the epoch. */
  now = Date.UTC(2026, 0, 1);
  /** The addresses whose leases a user deleted. */
  readonly freedByUser = new Set<string>();

  constructor() {
    const kinds = { ipamclaims: IPAM_CLAIMS, addressleases: ADDRESS_LEASES, addresspools: ADDRESS_POOLS, pods: PODS };
    super(kinds, { now: () => this.now, uidOf: (_kind, { metadata }, version) => `${metadata.name}#${version}` });
  }

  claim(uid: string | undefined): IPAMClaim | undefined {
    return this.list('ipamclaims').find(({ metadata }) => metadata.uid === uid);
  }

  protected override timeOfNext(): string {
    return new Date(this.now).toISOString();
  }
}
