import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { isRecord } from '../../api/json.js';
import { type KubeObject, byAge, isBeingDeleted, objectKey } from '../../api/meta.js';
import { shortHash } from '../../api/names.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { type Pool, type PoolProblem, compilePool } from '../pool/pool.js';

/** The state of a pool. Only a served pool allocates addresses. The message of any other says why not, and what to do. */
export type PoolState =
  | { kind: 'served'; pool: Pool }
  /** `with`: the older pool that serves the same users. */
  | { kind: 'conflict'; pool: Pool; with: string; message: string }
  | { kind: 'closing'; pool?: Pool; message: string }
  | { kind: 'invalid'; problems: readonly PoolProblem[]; message: string };

/** The parts of an AddressPool that affect others: everything but its status and bookkeeping. */
export interface ParsedPool {
  name: string;
  uid: string;
  network: string;
  createdAt: string;
  /** Set for derived pools. */
  nadNamespace?: string;
  isBeingDeleted: boolean;
  /** The unparsed spec.namespaces, so that a pool that is invalid elsewhere still affects only these namespaces. */
  namespaces?: readonly string[];
  /** It serves claims on NADs without IPAM. True also if the rest of the spec is invalid. */
  servesGuests: boolean;
  /** It has responders, whose claims get their addresses from it. */
  hasResponders: boolean;
  compiled: ReturnType<typeof compilePool>;
}

export interface EvaluatedPool extends ParsedPool {
  state: PoolState;
}

export function parsePool(pool: AddressPool): ParsedPool {
  const { name, uid = '', creationTimestamp = '' } = pool.metadata;
  const { namespaces, guest } = pool.spec;
  const nadNamespace = nadNamespaceOf(pool);
  const servesGuests = nadNamespace === undefined && isRecord(guest);
  return {
    name,
    uid,
    network: pool.spec.network,
    createdAt: creationTimestamp,
    ...(nadNamespace !== undefined && { nadNamespace }),
    ...(Array.isArray(namespaces) && { namespaces }),
    isBeingDeleted: isBeingDeleted(pool),
    servesGuests,
    hasResponders: servesGuests && isRecord(guest.dhcp),
    compiled: compilePool(pool),
  };
}

/**
 * Returns the pools of one network with their states, oldest first. An administrator's pool and a derived one do not conflict: the
 * administrator's wins. A pool that cannot serve conflicts with no other.
 */
export function evaluatePools(pools: readonly ParsedPool[]): EvaluatedPool[] {
  const serving: { read: ParsedPool; pool: Pool }[] = [];
  return [...pools].sort(byPoolAge).map((parsed) => {
    const unserved = unservedState(parsed);
    if (unserved !== undefined) return { ...parsed, state: unserved };
    const pool = compiledPool(parsed);
    if (pool === undefined) throw new TypeError(`AddressPool ${parsed.name} has neither a valid spec nor problems`);
    const olderPool = serving.find((other) => serveSameUsers(parsed, pool, other));
    if (olderPool !== undefined) return { ...parsed, state: conflictState(parsed, pool, olderPool.read) };
    serving.push({ read: parsed, pool });
    return { ...parsed, state: { kind: 'served', pool } };
  });
}

/** Returns the valid spec of a pool, served or not. */
export function compiledPool({ compiled }: Pick<ParsedPool, 'compiled'>): Pool | undefined {
  return compiled.ok ? compiled.pool : undefined;
}

/** Sorts the oldest pool first. */
export function byPoolAge(a: ParsedPool, b: ParsedPool): number {
  return byAge(creationOf(a), creationOf(b));
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
    `AddressPool ${parsed.name} serves no workload: the older AddressPool ${olderPool.name} serves the same users of network ` +
    `${parsed.network}; delete one of them, or set spec.namespaces of both to different namespaces`;
  return { kind: 'conflict', pool, with: olderPool.name, message };
}

/** Equal fingerprints mean that nothing changed for claims. */

const ofNads = new WeakMap<ParsedNad, string>();

export function nadFingerprint(nad: ParsedNad): string {
  const known = ofNads.get(nad);
  if (known !== undefined) return known;
  const { metadata, delegation, delivery, guestOptions, segment } = nad;
  const { uid, creationTimestamp } = metadata;
  // it is only compared, so a short hash is enough
  const parts = [objectKey(nad), uid, creationTimestamp, delegation, delivery, guestOptions, segment];
  const fingerprint = shortHash(JSON.stringify(parts), 32);
  ofNads.set(nad, fingerprint);
  return fingerprint;
}

/** True if a change of a pool only concerns its status or bookkeeping. */
export function isStatusChange(before: KubeObject, after: KubeObject): boolean {
  if (!('spec' in before && 'spec' in after)) return false;
  return poolFingerprint(before as AddressPool) === poolFingerprint(after as AddressPool);
}

/** Returns a text of everything in a pool that affects others. */
export function poolFingerprint({ metadata, spec }: AddressPool): string {
  const { name, uid, creationTimestamp, deletionTimestamp, annotations } = metadata;
  return JSON.stringify([name, uid, creationTimestamp, deletionTimestamp, annotations, spec]);
}

/** Returns the fingerprint of a pool with its state, to be serialized. */
export function evaluationFingerprint(pool: EvaluatedPool): unknown {
  const { name, uid, nadNamespace, namespaces, state, compiled } = pool;
  const described = state.kind === 'served' ? state.kind : state.message;
  return [name, uid, nadNamespace, namespaces, described, serialOf(compiled)];
}

const serials = new WeakMap<object, number>();
let lastSerial = 0;

/** Returns a number that identifies a parse result. */
function serialOf(compiled: object): number {
  const serial = serials.get(compiled) ?? ++lastSerial;
  serials.set(compiled, serial);
  return serial;
}
