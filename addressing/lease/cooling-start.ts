/** The part of a LeaseRecord that is used here. */
interface CoolingRecord {
  readonly metadata: { readonly uid: string };
  readonly releasedAt?: number;
  readonly quarantine?: { readonly since: number };
  readonly networkData?: object;
  readonly coolsSince?: number;
}

/** The readings of a process's clock: `now` is monotonic and began at the time of day, `wall` is the time of day and may be set. */
interface ClockReading {
  now(): number;
  wall(): number;
}

/** A clock that was set back by more was wrong before. */
const MAX_SET_BACK_MS = 600_000;

/**
 * Returns the record with the time from which this process counts its cool-down, sticky time or quarantine, in the clock's monotonic milliseconds.
 * A process that saw the release counts from then on, because the release was before: setting a clock ends no cool-down early, and
 * prolongs none. A release that it did not see counts from `releasedAt`, or from now if that is later. No time counts while a Secret may hold the address.
 * @param known the version of the lease that this process knew before; undefined if it knew none
 * @param hasSynced false while the first list is read: its releases were not seen
 */
export function withCoolingStart<R extends CoolingRecord>(
  record: R,
  { known, hasSynced, now }: { known: R | undefined; hasSynced: boolean; now: number },
): R {
  const began = beginningOf(record);
  if (began === undefined || record.coolsSince !== undefined) return record;
  const before = known?.metadata.uid === record.metadata.uid ? known : undefined;
  if (before?.coolsSince !== undefined && beginningOf(before) === began)
    return { ...record, coolsSince: before.coolsSince };
  const isSeen = before !== undefined || hasSynced;
  return { ...record, coolsSince: isSeen ? now : Math.min(began, now) };
}

/**
 * Returns when the cool-down or quarantine began, in the clock's milliseconds; Infinity for leases that are held or reserved, or whose address a
 * Secret may hold.
 */
export function coolingStart(record: Omit<CoolingRecord, 'metadata'>): number {
  return record.coolsSince ?? beginningOf(record) ?? Infinity;
}

/** By the clock of the process that wrote it. */
function beginningOf({ releasedAt, quarantine, networkData }: Omit<CoolingRecord, 'metadata'>): number | undefined {
  return networkData === undefined ? (releasedAt ?? quarantine?.since) : undefined;
}

/**
 * Returns the time to write into a release. A process that did not see the release knows nothing else, so a clock that was set back
 * while this process runs does not make it earlier.
 */
export function releaseTime(clock: ClockReading): number {
  const wall = clock.wall();
  return Math.max(wall, Math.min(clock.now(), wall + MAX_SET_BACK_MS));
}
