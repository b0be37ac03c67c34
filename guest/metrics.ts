import type { Metrics } from '../process/metrics.js';

/** Creates the metrics of the leader, which disappear at the end of its term. */
export function createGuestMetrics(metrics: Pick<Metrics, 'gauge' | 'counter'>) {
  const misconfigured = metrics.gauge(
    'guest_misconfigured_interfaces',
    'Claims whose guest does not have their addresses, for longer than --guest-grace.',
  );
  const notWritten = metrics.gauge(
    'guest_network_data_not_written',
    'VMs whose Secret with network data is not written, by reason.',
    ['reason'],
  );
  const responders = metrics.gauge(
    'guest_responders_wanted_status',
    '1 for each pool that has, or should have, responders.',
    ['pool'],
  );
  const writes = metrics.counter('guest_network_data_writes_total', 'Secrets with network data that were written.');
  return {
    /** @param more claims whose guests lack their addresses; less than 0: fewer */
    misconfigured: (more: number) => misconfigured.inc(more),
    /** The reason why a VM's Secret is not written has changed. Undefined: it is written, or not wanted. */
    notWritten: (before: string | undefined, after: string | undefined) => {
      if (before !== undefined) notWritten.dec({ reason: before });
      if (after !== undefined) notWritten.inc({ reason: after });
    },
    /** @param pools the names of the pools that have, or should have, responders */
    respondersWanted: (pools: readonly string[]) => {
      responders.reset();
      for (const pool of pools) responders.set({ pool }, 1);
    },
    /** A Secret was written. */
    written: () => writes.inc(),
    clear: () => {
      misconfigured.reset();
      notWritten.reset();
      responders.reset();
    },
  };
}

export type GuestMetrics = ReturnType<typeof createGuestMetrics>;
