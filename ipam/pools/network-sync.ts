import { BRIDGE_PLUGINS } from '../../api/networks/nad-guests.js';
import type { AddressPool } from '../../api/address-pool.js';
import { isBeingDeleted } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import { type NadRightsLookup, poolLimitMessage } from '../../api/networks/nad-rights.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Cache, Lister } from '../../kube/informers/cache.js';
import type { SyncResult } from '../../kube/controller-loop.js';
import { isAlreadyExists, isRejected, mayHaveActed, messageOf } from '../../kube/errors.js';
import { LASTING_EVENT_MS } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import { MAX_ADD_TIMEOUT_MS } from '../../process/config/agent-config.js';
import { BY_NAD_NAMESPACE } from '../../cluster/watch-specs.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { derivedPoolName } from '../../addressing/pool/derived-pool.js';
import type { PoolDirectory } from '../../addressing/directory/directory.js';
import { isServingNamespace } from '../../addressing/directory/resolution.js';
import { applyDerivation } from './apply.js';
import { type DerivationAction, type DerivationPlan, planDerivation } from './derivation.js';
import type { NadEvents } from './pool-events.js';
import { MAX_READ_NADS, type NadEvent } from './requested-pools.js';
import { countBlockingLeases } from './status.js';
import type { PoolUsage } from './usage.js';
import type { LeaseBook } from '../leases/lease-book.js';

export interface NetworkSyncDependencies {
  client: Pick<Client, 'create' | 'patch' | 'delete'>;
  pools: Pick<Cache<AddressPool>, 'get' | 'byIndex'>;
  directory: PoolDirectory;
  book: Pick<LeaseBook, 'ofPool'>;
  usage: PoolUsage;
  rightsOf: NadRightsLookup;
  clock: Pick<Clock, 'now'>;
  /** While closed, no pool is created, changed or deleted. */
  isGateOpen: () => boolean;
  log: Logger;
}

/** What one leadership term remembers of derived pools. */
export interface NetworkSyncMemory {
  readonly nadEvents: NadEvents;
  readonly fence: MoveFence;
  readonly counts: DerivedPoolCounts;
}

/**
 * When to look again at a pool that shares addresses without permission, or at the NAD that requests one. What others change does not wake them:
 * otherwise each change of a tenant would wake all networks of the address space.
 */
export const CONSENT_RECHECK_MS = 60_000;

/** How soon a NAD gets its pool after others of its namespace have gone. */
const LIMIT_RECHECK_MS = 60_000;

/** Makes the derived pool of a namespace and network follow its NADs. */
export async function syncNetwork(
  network: { namespace: string; network: string },
  { nadEvents, fence, counts }: NetworkSyncMemory,
  dependencies: NetworkSyncDependencies,
  call: CallOptions,
): Promise<SyncResult> {
  // while the API server serves no NADs, a missing NAD proves nothing
  if (!dependencies.directory.knowsNetworks) return undefined;
  const planned = await runInSlices(planNetwork(network, fence, dependencies), dependencies.clock);
  const events = [...planned.events, ...guestEvents(network, dependencies.directory)];
  for (const event of events) nadEvents.record(event);
  const again = events.length > 0 ? { requeueAfterMs: LASTING_EVENT_MS } : undefined;
  if (!dependencies.isGateOpen()) return again;
  const { action, notPermitted } = planned;
  // a creation without an answer may not have been carried out, and is not wanted any more
  if (action?.kind !== 'create') counts.observed(derivedPoolName(network.namespace, network.network));
  const { maxPools } = dependencies.rightsOf(network.namespace);
  if (action?.kind === 'create' && !counts.add(action.pool.metadata.name, network.namespace, maxPools)) {
    const limit = poolLimitMessage(network.namespace, maxPools);
    const message = `AddressPool ${action.pool.metadata.name} is not created: ${limit}`;
    nadEvents.record({ nad: action.nad, reason: EventReason.NetworkNotPermitted, message });
    return { requeueAfterMs: LIMIT_RECHECK_MS };
  }
  if (action !== undefined) await change(action, { nadEvents, counts }, dependencies, call);
  return notPermitted.length > 0 ? { requeueAfterMs: CONSENT_RECHECK_MS } : again;
}

async function change(
  action: DerivationAction,
  { nadEvents, counts }: Pick<NetworkSyncMemory, 'nadEvents' | 'counts'>,
  { client, log }: NetworkSyncDependencies,
  call: CallOptions,
): Promise<void> {
  const { name } = action.pool.metadata;
  log.info({ pool: name, action: action.kind }, 'changing derived pool');
  try {
    await applyDerivation(action, client, call);
  } catch (error) {
    // without an answer, it may exist although the cache does not show it yet
    if (!mayHaveActed(error) && !isAlreadyExists(error)) counts.observed(name);
    if ('nad' in action && isRejected(error)) {
      const message = `The API server rejected AddressPool ${name}: ${messageOf(error)}`;
      nadEvents.record({ nad: action.nad, reason: EventReason.PoolInvalid, message });
    }
    throw error;
  }
}

export function planNetwork(
  { namespace, network }: { namespace: string; network: string },
  fence: MoveFence,
  { directory, pools, book, usage, rightsOf }: NetworkSyncDependencies,
): Generator<undefined, DerivationPlan> {
  const name = derivedPoolName(namespace, network);
  const pool = pools.get(name);
  const hasAdminPool = directory
    .poolsOf(network)
    .some((other) => other.nadNamespace === undefined && (other.namespaces?.includes(namespace) ?? true));
  return planDerivation({
    namespace,
    network,
    nads: directory.nadsOf(namespace, network),
    ...(pool && { pool, compiled: directory.pool(name) }),
    leases: () => book.ofPool(name),
    blockingLeases: () => countBlockingLeases(usage.of(name, directory.pool(name))),
    hasAdminPool,
    ...(pool !== undefined && isBeingDeleted(pool) && fence.remainingMs(pool) > 0 && { fenceMs: fence.durationMs }),
    rights: rightsOf(namespace),
    poolsIn: (addressSpace) => directory.poolsIn(addressSpace),
  });
}

function guestEvents({ namespace, network }: { namespace: string; network: string }, directory: PoolDirectory) {
  const pools = directory.poolsOf(network);
  const servesGuests = pools.some((pool) => pool.servesGuests && isServingNamespace(pool, namespace));
  return servesGuests ? containerInterfaceEvents(directory.nadsOf(namespace, network)) : [];
}

/** Counts the derived pools of namespaces, also those that the cache does not show yet. */
export class DerivedPoolCounts {
  readonly #pools: Lister<AddressPool>;
  /** Namespaces of pools that are being created here, by name, until their sync sees the cache show them. */
  readonly #created = new Map<string, string>();

  constructor(pools: Lister<AddressPool>) {
    this.#pools = pools;
  }

  /**
   * Counts a pool before it is created, because other workers create pools meanwhile.
   * @returns false if the namespace has `max` other pools, or may have
   */
  add(pool: string, namespace: string, max: number): boolean {
    const known = this.#pools.byIndex(BY_NAD_NAMESPACE, namespace).map(({ metadata }) => metadata.name);
    const created = [...this.#created].flatMap(([name, of]) => (of === namespace ? name : []));
    if (new Set([...known, ...created].filter((name) => name !== pool)).size >= max) return false;
    this.#created.set(pool, namespace);
    return true;
  }

  /** To be called when the cache shows the pool, or shows it no more, or it was not created. */
  observed(pool: string): void {
    this.#created.delete(pool);
  }
}

/** How long the API server may work on a request that its client has given up (its flag --request-timeout). */
const ABANDONED_WRITE_MS = 60_000;

/**
 * Tells how long a derived pool that is being deleted must stay, so that no pool of its name serves another address space too early. A new leader knows only the
 * pool itself, so the delay starts again then.
 */
export class MoveFence {
  /** This long after the deletion of a pool, every CNI ADD that read it before has written its last lease. */
  readonly durationMs: number;
  readonly #elapsed: () => number;
  /** By name of the pool. */
  readonly #seen = new Map<string, { uid: string | undefined; at: number }>();

  /**
   * @param elapsed milliseconds of a monotonic clock
   * @param maxStalenessMs an agent leases from a pool that it has read from the API server at most this long ago
   */
  constructor(elapsed: () => number, maxStalenessMs: number) {
    this.#elapsed = elapsed;
    this.durationMs = maxStalenessMs + MAX_ADD_TIMEOUT_MS + ABANDONED_WRITE_MS;
  }

  /** @param pool that is being deleted; the delay starts with the first call */
  remainingMs({ metadata: { name, uid } }: Pick<AddressPool, 'metadata'>): number {
    const now = this.#elapsed();
    const known = this.#seen.get(name);
    if (known !== undefined && known.uid === uid) return Math.max(0, known.at + this.durationMs - now);
    this.#seen.set(name, { uid, at: now });
    return this.durationMs;
  }

  forget(name: string): void {
    this.#seen.delete(name);
  }
}

const MESSAGE =
  'The kernel of launchers uses the interface of the guest, too: set disableContainerInterface: true in the config of the bridge plugin. ' +
  'Otherwise it can draw the traffic of the guest to the target of a live migration, and takes an IPv6 address from router advertisements';

/** Returns a warning for each NAD of VMs whose launchers speak on the network beside their guests. @param nads on which a pool serves guests */
function containerInterfaceEvents(nads: readonly ParsedNad[]): NadEvent[] {
  return nads
    .filter(
      ({ config, delivery }) =>
        config.ok &&
        config.network.allowPersistentIPs &&
        delivery.kind === 'guest' &&
        // only it has the setting
        BRIDGE_PLUGINS.includes(delivery.plugin) &&
        !delivery.disablesContainerInterface,
    )
    .slice(0, MAX_READ_NADS)
    .map((nad) => ({ nad, reason: EventReason.ContainerInterfaceEnabled, message: MESSAGE }));
}
