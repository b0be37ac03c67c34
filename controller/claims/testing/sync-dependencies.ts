import type { Client } from '../../../kube/client.js';
import { silentLogger } from '../../../kube/log.js';
import { KNOWN_KUBEVIRT } from '../../../test/objects/launcher-pods.js';
import { BlockedWorkloads, QuotaWaits, WriteFailures } from '../waiting-workloads.js';
import { CreatedClaims } from '../created-claims.js';
import { LauncherList } from '../live-workload.js';
import type { Listers } from '../observe.js';
import { NOW } from './workload-observation.js';
import type { SyncDependencies } from '../sync.js';

/** All that a sync needs, with a clock that stands still and nobody who listens. */
export function syncDependencies(listers: Listers, client: Client): SyncDependencies {
  return {
    listers,
    client,
    launchers: new LauncherList(client, { now: () => 0 }),
    blockedWorkloads: new BlockedWorkloads(),
    createdClaims: new CreatedClaims({ now: () => 0 }),
    quotaWaits: new QuotaWaits(() => undefined),
    unreportedChanges: { take: () => ({ events: [] }) },
    writeFailures: new WriteFailures({ now: () => 0 }),
    dhcpAfterMigration: { take: () => undefined },
    areWorkloadsServed: () => true,
    isGateOpen: () => true,
    areNetworksKnown: () => true,
    servesPrimaryNetworks: false,
    maxClaims: 32,
    restoreWaitMs: 3_600_000,
    clock: { now: () => Date.parse(NOW), wall: () => Date.parse(NOW) },
    kubevirt: KNOWN_KUBEVIRT,
    events: { event: () => undefined },
    metrics: { decided: () => undefined, failed: () => undefined, notified: () => undefined },
    log: silentLogger,
  };
}
