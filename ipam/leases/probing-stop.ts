import { PROBE_LIMITS } from '../../api/limits.js';
import type { Family } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { QuarantinedByMac } from '../../addressing/lease/lease-quarantine.js';
import { type Pool, addressesOf } from '../../addressing/pool/pool.js';

/** Why no address of a pool is probed for a while. It follows from the leases, so that each process decides the same, also after a restart. */
export type ProbingStop =
  /** One host answers for many addresses. */
  | { reason: 'ProxyARP'; mac: string; leases: readonly LeaseRecord[] }
  /** As many addresses of a family are quarantined as may be. */
  | { reason: 'QuarantineFull'; leases: readonly LeaseRecord[] };

/** The quarantined leases that stop probing stay until they expire: then probing goes on. */
export function probingStopOf(pool: Pool, quarantined: QuarantinedByMac): ProbingStop | undefined {
  for (const [mac, leases] of quarantined) {
    if (leases.size >= PROBE_LIMITS.quarantinedByMac) return { reason: 'ProxyARP', mac, leases: [...leases] };
  }
  const leases = [...quarantined.values()].flatMap((each) => [...each]);
  if (leases.length === 0) return undefined;
  const isFull = pool.families.some((family) => {
    const count = leases.filter(({ address }) => address.family === family).length;
    return count >= maxQuarantined(pool, family);
  });
  return isFull || leases.length >= PROBE_LIMITS.quarantined ? { reason: 'QuarantineFull', leases } : undefined;
}

/** Each family has its own limit: the many IPv6 addresses of a pool must not allow to quarantine all of its IPv4 addresses. */
function maxQuarantined(pool: Pool, family: Family): bigint {
  const share = addressesOf(pool, family, 'open').size / BigInt(PROBE_LIMITS.quarantinedShare);
  return share > 1n ? share : 1n;
}
