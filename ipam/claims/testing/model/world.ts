import type { AddressLease } from '../../../../api/address-lease.js';
import type { AddressPool } from '../../../../api/address-pool.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import type { KubeObject } from '../../../../api/meta.js';
import type { Pod } from '../../../../api/pod.js';
import { ObjectWorld } from '../../../../test/object-world.js';

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
    super(KINDS, 100);
  }

  claim(uid: string | undefined): IPAMClaim | undefined {
    return this.list('ipamclaims').find(({ metadata }) => metadata.uid === uid);
  }

  remove(kind: Kind, key: string): void {
    const object = this.get(kind, key);
    if (object !== undefined) this.removeObject(kind, object);
  }

  protected override identityOf(_kind: Kind, { metadata }: KubeObject, version: number) {
    return { uid: `${metadata.name}#${version}`, creationTimestamp: new Date(this.now).toISOString() };
  }
}
