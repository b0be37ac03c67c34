import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { byAge, isBeingDeleted } from '../../api/meta.js';
import { type Pool, type PoolProblem, compilePool } from '../core/pool.js';

/** What a pool does. Only one that is served gives out addresses; a message says why another does not, and what to do. */
export type PoolState =
  | { kind: 'served'; pool: Pool }
  /** `with`: the pool that serves the same users. */
  | { kind: 'conflict'; pool: Pool; with: string; message: string }
  | { kind: 'closing'; pool?: Pool; message: string }
  | { kind: 'invalid'; problems: readonly PoolProblem[]; message: string };

/** A pool as far as others depend on it: its status and book-keeping are left out. */
export interface ParsedPool {
  name: string;
  uid: string;
  network: string;
  createdAt: string;
  /** Of a derived pool. */
  nadNamespace?: string;
  isBeingDeleted: boolean;
  /** As written, so that a pool that is invalid elsewhere is known to its users only. */
  namespaces?: readonly string[];
  compiled: ReturnType<typeof compilePool>;
}

export interface EvaluatedPool extends ParsedPool {
  state: PoolState;
}

export function parsePool(pool: AddressPool): ParsedPool {
  const { name, uid = '', creationTimestamp = '' } = pool.metadata;
  const { namespaces } = pool.spec;
  const nadNamespace = nadNamespaceOf(pool);
  return {
    name,
    uid,
    network: pool.spec.network,
    createdAt: creationTimestamp,
    ...(nadNamespace !== undefined && { nadNamespace }),
    ...(Array.isArray(namespaces) && { namespaces }),
    isBeingDeleted: isBeingDeleted(pool),
    compiled: compilePool(pool),
  };
}

/**
 * Judges the pools of one network, oldest first. An admin's pool and a derived one never compete: the admin's wins where a user has
 * both. One that cannot serve stands in nobody's way.
 */
export function evaluatePools(pools: readonly ParsedPool[]): EvaluatedPool[] {
  const serving: { read: ParsedPool; pool: Pool }[] = [];
  return [...pools]
    .sort((a, b) => byAge(creationOf(a), creationOf(b)))
    .map((parsed) => {
      const unserved = unservedState(parsed);
      if (unserved !== undefined) return { ...parsed, state: unserved };
      const pool = compiledPool(parsed);
      if (pool === undefined) throw new TypeError(`AddressPool ${parsed.name} is neither good nor bad`);
      const olderPool = serving.find((other) => serveSameUsers(parsed, pool, other));
      if (olderPool !== undefined) return { ...parsed, state: conflictState(parsed, pool, olderPool.read) };
      serving.push({ read: parsed, pool });
      return { ...parsed, state: { kind: 'served', pool } };
    });
}

/** What the pool may lease, whether it does or not. */
export function compiledPool({ compiled }: Pick<ParsedPool, 'compiled'>): Pool | undefined {
  return compiled.ok ? compiled.pool : undefined;
}

function creationOf({ name, createdAt }: ParsedPool) {
  return { metadata: { name, creationTimestamp: createdAt } };
}

function unservedState(parsed: ParsedPool): PoolState | undefined {
  const pool = compiledPool(parsed);
  if (parsed.isBeingDeleted) {
    return { kind: 'closing', ...(pool && { pool }), message: `AddressPool ${parsed.name} is being deleted` };
  }
  if (parsed.compiled.ok) return undefined;
  const { problems } = parsed.compiled;
  const [first, ...more] = problems;
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const message = `AddressPool ${parsed.name} is invalid: ${first?.field ?? 'spec'}: ${first?.message ?? ''}${rest}`;
  return { kind: 'invalid', problems, message };
}

function serveSameUsers(parsed: ParsedPool, pool: Pool, other: { read: ParsedPool; pool: Pool }): boolean {
  if (parsed.nadNamespace !== other.read.nadNamespace) return false;
  const [own, others] = [pool.namespaces, other.pool.namespaces];
  if (parsed.nadNamespace !== undefined || own === undefined || others === undefined) return true;
  return [...own].some((namespace) => others.has(namespace));
}

function conflictState(parsed: ParsedPool, pool: Pool, olderPool: ParsedPool): PoolState {
  const message =
    `AddressPool ${parsed.name} serves nobody: the older AddressPool ${olderPool.name} is for the same users of network ${parsed.network}; ` +
    `delete one of them, or give both spec.namespaces that do not overlap`;
  return { kind: 'conflict', pool, with: olderPool.name, message };
}
