import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { byAge, isBeingDeleted } from '../../api/meta.js';
import { type Pool, type PoolProblem, compilePool } from '../core/pool.js';

/** What a pool does. Only one that is served gives out addresses; a message says why another does not, and what to do. */
export type PoolVerdict =
  | { kind: 'served'; pool: Pool }
  /** `with`: the pool that serves the same users. */
  | { kind: 'conflict'; pool: Pool; with: string; message: string }
  | { kind: 'closing'; pool?: Pool; message: string }
  | { kind: 'invalid'; problems: readonly PoolProblem[]; message: string };

/** A pool as far as others depend on it: its status and book-keeping are left out. */
export interface ReadPool {
  name: string;
  uid: string;
  network: string;
  createdAt: string;
  /** Of a derived pool. */
  nadNamespace?: string;
  closing: boolean;
  /** As written, so that a pool that is invalid elsewhere is known to its users only. */
  namespaces?: readonly string[];
  compiled: ReturnType<typeof compilePool>;
}

export interface JudgedPool extends ReadPool {
  verdict: PoolVerdict;
}

export function readPool(pool: AddressPool): ReadPool {
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
    closing: isBeingDeleted(pool),
    compiled: compilePool(pool),
  };
}

/**
 * Judges the pools of one network, oldest first. An admin's pool and a derived one never compete: the admin's wins where a user has
 * both. One that cannot serve stands in nobody's way.
 */
export function judgePools(pools: readonly ReadPool[]): JudgedPool[] {
  const serving: { read: ReadPool; pool: Pool }[] = [];
  return [...pools]
    .sort((a, b) => byAge(born(a), born(b)))
    .map((read) => {
      const unfit = unfitness(read);
      if (unfit !== undefined) return { ...read, verdict: unfit };
      const pool = compiledPool(read);
      if (pool === undefined) throw new TypeError(`AddressPool ${read.name} is neither good nor bad`);
      const rival = serving.find((other) => compete(read, pool, other));
      if (rival !== undefined) return { ...read, verdict: conflict(read, pool, rival.read) };
      serving.push({ read, pool });
      return { ...read, verdict: { kind: 'served', pool } };
    });
}

/** What the pool may lease, whether it does or not. */
export function compiledPool({ compiled }: Pick<ReadPool, 'compiled'>): Pool | undefined {
  return compiled.ok ? compiled.pool : undefined;
}

function born({ name, createdAt }: ReadPool) {
  return { metadata: { name, creationTimestamp: createdAt } };
}

function unfitness(read: ReadPool): PoolVerdict | undefined {
  const pool = compiledPool(read);
  if (read.closing) {
    return { kind: 'closing', ...(pool && { pool }), message: `AddressPool ${read.name} is being deleted` };
  }
  if (read.compiled.ok) return undefined;
  const { problems } = read.compiled;
  const [first, ...more] = problems;
  const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
  const message = `AddressPool ${read.name} is invalid: ${first?.field ?? 'spec'}: ${first?.message ?? ''}${rest}`;
  return { kind: 'invalid', problems, message };
}

function compete(read: ReadPool, pool: Pool, other: { read: ReadPool; pool: Pool }): boolean {
  if (read.nadNamespace !== other.read.nadNamespace) return false;
  const [own, others] = [pool.namespaces, other.pool.namespaces];
  if (read.nadNamespace !== undefined || own === undefined || others === undefined) return true;
  return [...own].some((namespace) => others.has(namespace));
}

function conflict(read: ReadPool, pool: Pool, rival: ReadPool): PoolVerdict {
  const message =
    `AddressPool ${read.name} serves nobody: the older AddressPool ${rival.name} is for the same users of network ${read.network}; ` +
    `delete one of them, or give both spec.namespaces that do not overlap`;
  return { kind: 'conflict', pool, with: rival.name, message };
}
