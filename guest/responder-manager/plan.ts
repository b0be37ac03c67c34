import type { IPAMClaim } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import { type KubeObject, isBeingDeleted, joinKey } from '../../api/meta.js';
import { EventReason } from '../../api/event-reasons.js';
import { IPS_ALLOCATED, RESPONDERS_NAMESPACE, RESPONDER_CONTENT_ANNOTATION } from '../../api/names.js';
import { attachmentProblem, isResponderClaim, responderSetName } from '../../api/responders.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import type { Pool } from '../../addressing/pool/pool.js';
import {
  type PodDisruptionBudget,
  type ResponderSettings,
  type StatefulSet,
  responderBudget,
  responderNames,
  responderSet,
  serverClaim,
} from './objects.js';

/** All input of a plan. Objects are those in the responders' namespace. */
export interface ObservedResponders {
  /** Administrators' pools that serve and have `spec.guest.dhcp`, oldest first. */
  readonly pools: readonly Pool[];
  /** The UIDs of pools that cannot be read now: their responders stay as they are. */
  readonly unreadable: readonly string[];
  /** By name. */
  readonly nads: ReadonlyMap<string, ParsedNad>;
  readonly sets: readonly KubeObject[];
  readonly budgets: readonly KubeObject[];
  readonly claims: readonly IPAMClaim[];
  readonly pods: readonly KubeObject[];
  /** Without them, nothing is created or changed. */
  readonly settings: ResponderSettings | { readonly problem: string };
  /** How many pools may have responders. */
  readonly maxPools: number;
}

export type ResponderAction =
  | { readonly kind: 'create-set'; readonly pool: Pool; readonly set: StatefulSet }
  | { readonly kind: 'update-set'; readonly pool: Pool; readonly set: StatefulSet; readonly uid: string | undefined }
  | { readonly kind: 'create-budget'; readonly pool: Pool; readonly budget: PodDisruptionBudget }
  | { readonly kind: 'create-claim'; readonly pool: Pool; readonly claim: IPAMClaim }
  | { readonly kind: 'delete-set' | 'delete-budget' | 'delete-claim'; readonly object: KubeObject }
  | { readonly kind: 'report'; readonly pool: Pool; readonly reason: EventReason; readonly message: string };

/** Plans the responders of all pools. Pure. Yields between short steps. */
export function* planResponders(observed: ObservedResponders): Generator<undefined, ResponderAction[]> {
  const { pools, maxPools, unreadable } = observed;
  const oldest = oldestOfNetworks(pools);
  const served = poolsWithResponders(observed);
  const kept = new Set([...served, ...unreadable.map((uid) => ({ uid }))].map(responderSetName));
  const existing = namesOf(observed);
  const planned: ResponderAction[] = [];
  for (const pool of served) {
    planned.push(...planPool(pool, observed, existing));
    yield;
  }
  const isServed = new Set(served);
  return [
    ...planned,
    ...pools
      .filter((pool) => !isServed.has(pool))
      .map((pool) => report(pool, EventReason.ResponderLimit, limitMessage(pool, oldest.get(pool.network), maxPools))),
    ...planRemovals(kept, observed, existing),
  ];
}

/** The oldest pool of each network, as many as may have responders. */
export function poolsWithResponders({ pools, maxPools }: Pick<ObservedResponders, 'pools' | 'maxPools'>): Pool[] {
  const oldest = oldestOfNetworks(pools);
  return pools.filter((pool) => oldest.get(pool.network) === pool).slice(0, maxPools);
}

function oldestOfNetworks(pools: readonly Pool[]): ReadonlyMap<Pool['network'], Pool> {
  return new Map(pools.toReversed().map((pool) => [pool.network, pool]));
}

/** What exists, by name: a search through lists for each of thousands of pools would take seconds. */
interface ExistingObjects {
  readonly sets: ReadonlyMap<string, KubeObject>;
  readonly budgets: ReadonlyMap<string, KubeObject>;
  readonly claims: ReadonlyMap<string, IPAMClaim>;
  readonly pods: ReadonlyMap<string, KubeObject>;
}

function namesOf({ sets, budgets, claims, pods }: ObservedResponders): ExistingObjects {
  return { sets: byName(sets), budgets: byName(budgets), claims: byName(claims), pods: byName(pods) };
}

function byName<T extends KubeObject>(objects: readonly T[]): Map<string, T> {
  return new Map(objects.map((object) => [object.metadata.name, object]));
}

function planPool(pool: Pool, observed: ObservedResponders, existing: ExistingObjects): ResponderAction[] {
  const { settings } = observed;
  if ('problem' in settings) {
    const message = `No responders run for AddressPool ${pool.name}: ${settings.problem}`;
    return [report(pool, EventReason.ResponderImageUnknown, message)];
  }
  const { attachment = '' } = pool.guest ?? {};
  const key = joinKey(RESPONDERS_NAMESPACE, attachment);
  const problem = attachmentProblem(observed.nads.get(key), pool.network);
  // responders that run have their network already
  if (problem !== undefined) {
    const message = `No responders run for AddressPool ${pool.name}: NetworkAttachmentDefinition ${key}, which spec.guest.attachment names, ${problem}`;
    return [report(pool, EventReason.ResponderAttachmentInvalid, message)];
  }
  const set = responderSet(pool, attachment, settings);
  const { name } = set.metadata;
  const names = responderNames(name);
  const missing = names.filter((each) => !existing.claims.has(each));
  const claims = names.flatMap((each) => existing.claims.get(each) ?? []);
  return [
    ...missing.map((each): ResponderAction => ({ kind: 'create-claim', pool, claim: serverClaim(each, pool) })),
    ...planSet(pool, set, existing.sets.get(name)),
    ...(existing.budgets.has(name) ? [] : [{ kind: 'create-budget', pool, budget: responderBudget(set) } as const]),
    ...claims.flatMap((claim) => reportClaim(pool, claim)),
  ];
}

function planSet(pool: Pool, set: StatefulSet, existing: KubeObject | undefined): ResponderAction[] {
  if (existing === undefined) return [{ kind: 'create-set', pool, set }];
  if (isBeingDeleted(existing) || contentOf(existing) === contentOf(set)) return [];
  return [{ kind: 'update-set', pool, set, uid: existing.metadata.uid }];
}

/** Without an IPv4 address, a responder still answers DHCPv6 and router solicitations. */
function reportClaim(pool: Pool, { metadata, status }: IPAMClaim): ResponderAction[] {
  const failed = status?.conditions?.find(({ type, status: value }) => type === IPS_ALLOCATED && value === 'False');
  if (failed === undefined || !pool.families.includes(4)) return [];
  const message = `Responder ${metadata.name} answers no DHCPv4, because it has no address: ${failed.message}`;
  return [report(pool, EventReason.ResponderWithoutAddress, message)];
}

/** Addresses become free when nothing on the network uses them any more: claims go after the pods. */
function planRemovals(
  kept: ReadonlySet<string>,
  { sets, budgets, claims }: ObservedResponders,
  existing: ExistingObjects,
): ResponderAction[] {
  const isKept = ({ metadata }: KubeObject) => kept.has(metadata.name);
  const isUsed = ({ metadata: { name } }: KubeObject) =>
    existing.pods.has(name) || existing.sets.has(name.slice(0, name.lastIndexOf('-')));
  const neededNames = new Set([...kept].flatMap(responderNames));
  return [
    ...sets.filter((set) => !isKept(set)).map((object) => ({ kind: 'delete-set', object }) as const),
    ...budgets.filter((budget) => !isKept(budget)).map((object) => ({ kind: 'delete-budget', object }) as const),
    ...claims
      .filter((claim) => isResponderClaim(claim.metadata) && !neededNames.has(claim.metadata.name) && !isUsed(claim))
      .map((object) => ({ kind: 'delete-claim', object }) as const),
  ].filter(({ object }) => !isBeingDeleted(object));
}

/** @param oldest of the pools of the same network. The claims of all responders on the network get its addresses. */
function limitMessage(pool: Pool, oldest: Pool | undefined, maxPools: number): string {
  const subject = `No responders run for AddressPool ${pool.name}:`;
  if (oldest !== undefined && oldest !== pool)
    return `${subject} the older AddressPool ${oldest.name} has those of network ${describeValue(pool.network)}. Serve the guests of both from one pool`;
  return `${subject} ${maxPools} older pools have them (guest flag --max-responder-pools). Raise the limit`;
}

function report(pool: Pool, reason: EventReason, message: string): ResponderAction {
  return { kind: 'report', pool, reason, message };
}

function contentOf({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[RESPONDER_CONTENT_ANNOTATION];
}
