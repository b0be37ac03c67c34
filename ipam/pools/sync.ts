import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { isBeingDeleted, splitKey } from '../../api/meta.js';
import { EventReason } from '../../api/names.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isForbidden, isInvalid, messageOf } from '../../kube/errors.js';
import type { EventRecorder } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import type { SyncResult } from '../../kube/loop.js';
import type { Lister } from '../../kube/cache.js';
import type { Blocks } from '../blocks/blocks.js';
import { addFinalizer, applyDerivation, mayGo, removeFinalizer, wantsFinalizer } from './apply.js';
import { type DerivationPlan, planDerivation } from './derivation.js';
import { displacementOf } from './displacement.js';
import { derivedPoolName } from '../core/derived-pool.js';
import type { PoolDirectory } from '../../process/pools/directory.js';
import { Notices, tellOfConditions } from './notices.js';
import { type Judgement, blockersOf, conditionsOf, countsOf } from './status.js';
import { StatusWriter } from './status-writer.js';
import type { LeaseSource, PoolUsage } from './usage.js';
import type { PoolVerdict } from '../../process/pools/verdict.js';

export type PoolClient = Pick<Client, 'create' | 'patch' | 'delete' | 'listAs'>;

export interface PoolsDependencies {
  client: PoolClient;
  pools: Pick<Lister<AddressPool>, 'get'>;
  directory: PoolDirectory;
  book: LeaseSource;
  usage: PoolUsage;
  /** Absent where nodes are lent none. */
  blocks?: Pick<Blocks, 'statusOf' | 'holdingUp'>;
  /** Closed: no pool is made, changed or deleted. */
  isGateOpen: () => boolean;
  events: Pick<EventRecorder, 'event'>;
  clock: Pick<Clock, 'now'>;
  log: Logger;
}

/** The sync of one term of leadership. Its keys: names of pools, and `namespace/network` of NADs. */
export function createPoolsSync(
  dependencies: PoolsDependencies,
): (key: string, signal?: AbortSignal) => Promise<SyncResult> {
  const writer = new StatusWriter(dependencies.client, dependencies.clock);
  const notices = new Notices(dependencies.events);
  return async (key, signal) => {
    const call = signal === undefined ? {} : { signal };
    if (!key.includes('/')) return syncPool(key, writer, dependencies, call);
    const { namespace, name: network } = splitKey(key);
    return syncNetwork({ namespace, network }, notices, dependencies, call);
  };
}

/** Brings the derived pool of a network and a namespace of NADs to what the NADs say. */
async function syncNetwork(
  network: { namespace: string; network: string },
  notices: Notices,
  dependencies: PoolsDependencies,
  call: CallOptions,
): Promise<SyncResult> {
  // no NAD is seen, and none is gone for sure
  if (!dependencies.directory.knowsNetworks) return undefined;
  const planned = planOf(network, dependencies);
  for (const notice of planned.notices) notices.tell(notice);
  if (!dependencies.isGateOpen()) return undefined;
  for (const action of planned.actions) {
    const { name } = action.pool.metadata;
    dependencies.log.info({ pool: name, action: action.kind }, 'derived pool');
    try {
      await applyDerivation(action, dependencies.client, call);
    } catch (error) {
      const refused = 'nad' in action && (isInvalid(error) || isForbidden(error));
      const message = `AddressPool ${name} is refused by the API server: ${messageOf(error)}`;
      if (refused) notices.tell({ nad: action.nad, reason: EventReason.PoolInvalid, message });
      throw error;
    }
  }
  return undefined;
}

function planOf(
  { namespace, network }: { namespace: string; network: string },
  { directory, pools, book, usage }: PoolsDependencies,
): DerivationPlan {
  const name = derivedPoolName(namespace, network);
  const pool = pools.get(name);
  const hasAdminPool = directory
    .poolsOf(network)
    .some((other) => other.nadNamespace === undefined && (other.namespaces?.includes(namespace) ?? true));
  return planDerivation({
    namespace,
    network,
    nads: directory.nadsOf(namespace, network),
    ...(pool && { pool }),
    leases: () => book.ofPool(name),
    blockers: blockersOf(usage.of(name, directory.pool(name))),
    hasAdminPool,
  });
}

/** Keeps a pool's finalizer and status true. */
async function syncPool(
  name: string,
  writer: StatusWriter,
  dependencies: PoolsDependencies,
  call: CallOptions,
): Promise<SyncResult> {
  const { pools, directory, usage, client, log, events } = dependencies;
  const pool = pools.get(name);
  const verdict = directory.verdict(name);
  if (pool === undefined || verdict === undefined) {
    writer.forget(name);
    usage.forget(name);
    return undefined;
  }
  if (wantsFinalizer(pool)) await addFinalizer(pool, client, call);
  if (isDone(pool, dependencies)) {
    // what the cache does not know of may have been leased by somebody else
    if (!(await mayGo(pool, client, call))) return { retry: `AddressPool ${name} is leased from, says the API server` };
    log.info({ pool: name }, 'no address is leased: the deleted pool goes');
    await removeFinalizer(pool, client, call);
    return undefined;
  }
  const inMs = writer.dueIn(pool);
  if (inMs > 0) return { earlyByMs: inMs };
  const written = await writer.write(pool, wantedStatus(pool, verdict, dependencies), call);
  tellOfConditions(pool, written.turned, events);
  return undefined;
}

/** It is being deleted, and nobody has anything of it. */
function isDone(pool: AddressPool, { usage, directory, blocks }: PoolsDependencies): boolean {
  const { name } = pool.metadata;
  if (!isBeingDeleted(pool) || blockersOf(usage.of(name, directory.pool(name))) > 0) return false;
  // each that goes calls for another look
  return (blocks?.holdingUp(name) ?? 0) === 0;
}

function wantedStatus(pool: AddressPool, verdict: PoolVerdict, dependencies: PoolsDependencies) {
  const { directory, usage, book, blocks } = dependencies;
  const { name, generation } = pool.metadata;
  const compiled = directory.pool(name);
  if (compiled !== undefined) book.setPool(compiled);
  const used = usage.of(name, compiled);
  const space = compiled && book.space(compiled.addressSpace);
  const free = (compiled?.families ?? []).reduce((sum, family) => sum + (space?.free(name, family) ?? 0n), 0n);
  const findings = conditionsOf({
    verdict,
    usage: used,
    leases: { ofPool: () => book.ofPool(name), get: (lease) => book.get(lease) },
    ...besideNads(pool, dependencies),
  });
  return {
    ...countsOf(compiled, used, free),
    ...(compiled !== undefined && blocks !== undefined && { blocks: blocks.statusOf(compiled) }),
    ...(generation !== undefined && { observedGeneration: generation }),
    findings,
  };
}

/** How a derived pool stands to its NADs, and to admins' pools. */
function besideNads(pool: AddressPool, dependencies: PoolsDependencies): Pick<Judgement, 'agreement' | 'displaced'> {
  const { directory } = dependencies;
  const { name } = pool.metadata;
  const { network } = pool.spec;
  const nadNamespace = nadNamespaceOf(pool);
  if (nadNamespace === undefined) return {};
  const displaced = displacementOf({ name, nadNamespace }, directory.poolsOf(network));
  return {
    ...(directory.knowsNetworks && { agreement: planOf({ namespace: nadNamespace, network }, dependencies).agreement }),
    ...(displaced && { displaced }),
  };
}
