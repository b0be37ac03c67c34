import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { EventReason } from '../../api/names.js';
import type { NetworkAttachment } from '../../process/shrink.js';
import { type LeaseRecord } from '../core/lease.js';
import { type Pool, compilePool } from '../core/pool.js';
import { derivedPool, derivedPoolName, derivedSpec, nadNamespaceOf } from './derived-pool.js';
import { named } from './status.js';
import { outsideOf } from './usage.js';

/** What is known of the NADs of one namespace and network, and of the pool that is derived from them. */
export interface Derivation {
  namespace: string;
  network: string;
  /** Those whose config names the network, oldest first. */
  nads: readonly NetworkAttachment[];
  /** The object of the derived pool's name. */
  pool?: AddressPool;
  /** Leases of that pool. */
  leases: () => Iterable<LeaseRecord>;
  /** Of these, the ones for which a pool stays. */
  blockers: number;
  /** A pool of an admin serves the users of the namespace. */
  hasAdminPool: boolean;
}

/** What NADs and derived pool say of each other: a condition of the pool. */
export interface Agreement {
  agree: boolean;
  reason: 'NetworksAgree' | 'NetworksDisagree' | 'NetworkInvalid' | 'NetworkGone' | 'LeasedOutside';
  message: string;
}

/** To be told to the owner of a NAD. */
export interface NadNotice {
  nad: NetworkAttachment;
  reason: EventReason;
  message: string;
}

export type DerivationAction =
  | { kind: 'create'; pool: AddressPool; nad: NetworkAttachment }
  | { kind: 'update'; pool: AddressPool; spec: AddressPoolSpec; nad: NetworkAttachment }
  | { kind: 'delete'; pool: AddressPool };

export interface DerivationPlan {
  actions: DerivationAction[];
  notices: NadNotice[];
  agreement: Agreement;
}

/** What one NAD asks for. */
interface Wish {
  nad: NetworkAttachment;
  spec: AddressPoolSpec;
  pool: Pool;
}

/** The derived pool follows the oldest NAD that asks for one; it outlives its NADs while it is leased from. */
export function planDerivation(derivation: Derivation): DerivationPlan {
  const { wishes, notices, invalid } = read(derivation);
  const [wish, ...others] = wishes;
  if (wish === undefined) return { ...planWithout(derivation, invalid), notices };
  const disagreeing = others.filter(({ pool }) => !isSame(pool, wish.pool));
  for (const { nad } of disagreeing) notices.push(disagreement(nad, wish.nad, derivation.network));
  const { pool: existing, namespace, network } = derivation;
  const agreement = agreementOf(wish, disagreeing, invalid);
  if (existing === undefined)
    return {
      actions: [{ kind: 'create', pool: derivedPool(namespace, wish.spec), nad: wish.nad }],
      notices,
      agreement,
    };
  if (!isDerived(existing, derivation)) {
    const message = `AddressPool ${existing.metadata.name} was not made for NADs of namespace ${namespace} and network ${network}: rename that pool`;
    return {
      actions: [],
      notices: [...notices, { nad: wish.nad, reason: EventReason.PoolConflict, message }],
      agreement,
    };
  }
  // it is made anew once it is gone
  if (isBeingDeleted(existing)) return { actions: [], notices, agreement };
  const compiled = compilePool(existing);
  if (compiled.ok && isSame(compiled.pool, wish.pool)) return { actions: [], notices, agreement };
  const outside = outsideOf(derivation.leases(), wish.pool);
  if (outside.length === 0)
    return { actions: [{ kind: 'update', pool: existing, spec: wish.spec, nad: wish.nad }], notices, agreement };
  const message = `NAD ${objectKey(wish.nad)} leaves out addresses that are leased: ${named(outside, outside.length, () => true)}; the pool stays as it is until they are free, so add them to the NAD again`;
  notices.push({ nad: wish.nad, reason: EventReason.NetworksDisagree, message });
  return { actions: [], notices, agreement: { agree: false, reason: 'LeasedOutside', message } };
}

function read({ network, nads, hasAdminPool, pool }: Derivation) {
  const wishes: Wish[] = [];
  const notices: NadNotice[] = [];
  const invalid: NetworkAttachment[] = [];
  const bare: NetworkAttachment[] = [];
  for (const nad of nads) {
    const { delegation } = nad;
    const derived =
      delegation.kind === 'holdfast'
        ? derivedSpec(network, delegation.config)
        : delegation.kind === 'invalid'
          ? { kind: 'invalid' as const, problems: [delegation.problem] }
          : undefined;
    if (derived === undefined) continue;
    if (derived.kind === 'none') bare.push(nad);
    if (derived.kind === 'invalid') {
      invalid.push(nad);
      const message = derived.problems.map((problem) => `${problem.field} ${problem.message}`).join('; ');
      notices.push({ nad, reason: EventReason.NetworkInvalid, message });
    }
    if (derived.kind === 'spec') wishes.push({ nad, spec: derived.spec, pool: derived.pool });
  }
  const message = `no AddressPool serves network ${network} here: create one, or add subnets to the ipam object of the NAD`;
  const isMissing = wishes.length === 0 && !hasAdminPool && pool === undefined;
  if (isMissing) notices.push(...bare.map((nad) => ({ nad, reason: EventReason.PoolMissing, message })));
  return { wishes, notices, invalid };
}

function planWithout(derivation: Derivation, invalid: readonly NetworkAttachment[]): Omit<DerivationPlan, 'notices'> {
  const { pool, blockers, network, namespace } = derivation;
  const [broken] = invalid;
  if (broken !== undefined) {
    // whoever mends it wants to find the pool as it was
    const message = `NAD ${objectKey(broken)} cannot be used: the pool stays as it is; correct the NAD`;
    return { actions: [], agreement: { agree: false, reason: 'NetworkInvalid', message } };
  }
  const message = `no NAD of namespace ${namespace} and network ${network} asks for it any more: it goes when no address of it is leased`;
  const agreement: Agreement = { agree: false, reason: 'NetworkGone', message };
  const isDue = pool !== undefined && isDerived(pool, derivation) && !isBeingDeleted(pool) && blockers === 0;
  return { actions: isDue ? [{ kind: 'delete', pool }] : [], agreement };
}

function agreementOf(wish: Wish, disagreeing: readonly Wish[], invalid: readonly NetworkAttachment[]): Agreement {
  const inForce = `NAD ${objectKey(wish.nad)} is in force`;
  const keys = (nads: readonly NetworkAttachment[]) => nads.map(objectKey).join(', ');
  if (disagreeing.length > 0) {
    const message = `${inForce}; others ask for other addresses: ${keys(disagreeing.map(({ nad }) => nad))}`;
    return { agree: false, reason: 'NetworksDisagree', message };
  }
  if (invalid.length > 0) {
    return { agree: false, reason: 'NetworkInvalid', message: `${inForce}; others cannot be used: ${keys(invalid)}` };
  }
  return { agree: true, reason: 'NetworksAgree', message: inForce };
}

function disagreement(nad: NetworkAttachment, older: NetworkAttachment, network: string): NadNotice {
  const message = `the older NAD ${objectKey(older)} of network ${network} asks for other addresses and is in force: make both equal, or name another network`;
  return { nad, reason: EventReason.NetworksDisagree, message };
}

function isDerived(pool: AddressPool, { namespace, network }: Derivation): boolean {
  return (
    nadNamespaceOf(pool) === namespace &&
    pool.spec.network === network &&
    pool.metadata.name === derivedPoolName(namespace, network)
  );
}

/** The same addresses on the same terms, however they are written. */
function isSame(one: Pool, other: Pool): boolean {
  return meaningOf(one) === meaningOf(other);
}

function meaningOf({ addressSpace, subnets, cooldownMs, stickyMs, namespaces }: Pool): string {
  const meaning = [addressSpace, subnets, cooldownMs, stickyMs, namespaces && [...namespaces].sort()];
  return JSON.stringify(meaning, (_key, value: unknown) => (typeof value === 'bigint' ? value.toString() : value));
}
