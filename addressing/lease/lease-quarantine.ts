import type { LeaseQuarantine } from '../../api/address-lease.js';
import { PROBE_LIMITS } from '../../api/limits.js';
import type { ObjectPatch } from '../../api/meta.js';
import { PROBE_ANNOTATION } from '../../api/names.js';
import { type ProbeState, formatProbe } from '../../api/probe.js';
import { type Family, formatAddress } from '../address/address.js';
import { CLEARED_LABELS, type LeaseRecord, leaseLabels } from './lease-record.js';
import { CLEARED_OWNER, isReservation, patchLease, stateOf } from './lease.js';
import { type Pool, subnetOf } from '../pool/pool.js';

/** What follows from the probe of an address: its claim may show it, or nobody gets it for a while because another host has it. */

/**
 * Takes the address from its owner, which does not use it yet.
 * @param mac of the host that answered for the address
 * @param at see {@link releaseTime}
 * @param forMs until the lease expires
 * @throws {TypeError} if the lease is not held, or is reserved for a MAC address: then nobody else may get the address anyway
 */
export function quarantineLease(
  record: LeaseRecord,
  mac: string,
  at: number,
  forMs: number = PROBE_LIMITS.quarantineMs,
): ObjectPatch {
  const { metadata, address, pool } = record;
  if (stateOf(record) !== 'held' || isReservation(record)) {
    const state = isReservation(record) ? 'reserved' : stateOf(record);
    throw new TypeError(`AddressLease ${metadata.name} is ${state}: it cannot be quarantined`);
  }
  const quarantine: LeaseQuarantine = {
    since: new Date(at).toISOString(),
    until: new Date(at + forMs).toISOString(),
    mac: mac.toLowerCase(),
  };
  return patchLease(record, {
    labels: { ...CLEARED_LABELS, ...leaseLabels({ address: formatAddress(address), pool }) },
    annotations: { [PROBE_ANNOTATION]: null },
    spec: { ...CLEARED_OWNER, mac: null, quarantine },
  });
}

/** Writes how the probe of a held lease ended. No later answer counts: it has an older version of the lease. */
export function endProbe(record: Pick<LeaseRecord, 'metadata'>, state: Exclude<ProbeState, 'requested'>): ObjectPatch {
  return patchLease(record, { annotations: { [PROBE_ANNOTATION]: formatProbe(state) } });
}

/** The quarantined leases of a pool, by the MAC address that answered for them. */
export type QuarantinedByMac = ReadonlyMap<string, ReadonlySet<LeaseRecord>>;

export class QuarantineIndex {
  readonly #ofPool = new Map<string, Map<string, Set<LeaseRecord>>>();

  ofPool(pool: string): QuarantinedByMac {
    return this.#ofPool.get(pool) ?? NONE;
  }

  /** Counts the quarantined leases of one family at addresses that the pool allocates without a request for them. */
  countOpen(pool: Pool, family: Family): number {
    const leases = [...this.ofPool(pool.name).values()].flatMap((ofMac) => [...ofMac]);
    const ofFamily = leases.filter(({ address }) => address.family === family);
    return ofFamily.filter(({ address }) => subnetOf(pool, address)?.open.has(address.value)).length;
  }

  /** Leases in other states are ignored. */
  add(lease: LeaseRecord): void {
    const { pool, quarantine } = lease;
    if (quarantine === undefined) return;
    const byMac = this.#ofPool.get(pool) ?? new Map<string, Set<LeaseRecord>>();
    this.#ofPool.set(pool, byMac);
    byMac.set(quarantine.mac, (byMac.get(quarantine.mac) ?? new Set()).add(lease));
  }

  /** @param lease the same object that was added */
  delete(lease: LeaseRecord): void {
    const { pool, quarantine } = lease;
    const byMac = this.#ofPool.get(pool);
    if (byMac === undefined || quarantine === undefined) return;
    const leases = byMac.get(quarantine.mac);
    leases?.delete(lease);
    if (leases?.size === 0) byMac.delete(quarantine.mac);
    if (byMac.size === 0) this.#ofPool.delete(pool);
  }
}

const NONE: QuarantinedByMac = new Map();
