import { type IPAMClaim, claimName } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID, EventReason } from '../../api/names.js';
import { servedVmNetwork } from '../../api/vm-claims.js';
import type { Action } from './action.js';
import { lateRequestEvent, withoutLateRequest } from './address-requests.js';
import { changesTo } from './claim-object.js';
import { type OwnerClaims, findDesiredClaims } from './desired.js';
import { type DesiredClaim } from './desired-claim.js';
import { releaseAfterUserDelete, releaseAfterUnplug, releaseAfterOwner, releaseOwnerless } from './release-rules.js';
import type { ObservedWorkload } from './observed-workload.js';
import { type OwnedClaim, ownedClaims } from './ownership.js';
import { planMissingClaim, regardingKind } from './missing-claims.js';

/** What shall be done about the claims of one workload. Pure: the same observation gives the same actions. */
export function plan(observed: ObservedWorkload): Action[] {
  const owned = ownedClaims(observed);
  const demands = findDesiredClaims(observed, owned);
  const served = assignClaims(demands, owned, observed);
  const taken = new Set<string>();
  return [
    ...owned.map((claim) => planClaim(claim, served.byClaim.get(claim), demands, observed)),
    ...releaseOwnerless(observed),
    ...demands.flatMap((demand) => {
      const lacking = demand.claims.filter((wanted) => !served.interfaces.has(wanted));
      const room = remainingClaims(demand, owned, observed);
      return [
        ...lacking.slice(0, room).map((wanted) => planMissingClaim({ demand, wanted, observed, owned, taken })),
        ...refuseExcess(demand, lacking.slice(room), observed),
      ];
    }),
    ...demands.flatMap((demand) => reportProblems(demand, observed)),
    ...[...served.byClaim].flatMap(([claim, wanted]) => refuseLateRequest(claim, wanted, observed)),
  ];
}

/** How many more claims the owner may have. Claims that exist are never released because of the limit. */
function remainingClaims(
  { owner }: OwnerClaims,
  owned: readonly OwnedClaim[],
  { maxClaims }: ObservedWorkload,
): number {
  return Math.max(0, maxClaims - owned.filter((claim) => claim.owner.uid === owner.uid).length);
}

function refuseExcess({ owner }: OwnerClaims, excess: readonly DesiredClaim[], observed: ObservedWorkload): Action[] {
  const [first] = excess;
  if (first === undefined) return [];
  const { namespace, name, maxClaims } = observed;
  const which = excess.length === 1 ? '' : ` and ${excess.length - 1} more`;
  const message =
    `${owner.kind} ${joinKey(namespace, name)} may have ${maxClaims} IPAMClaims (--max-claims-per-vm of the controller): interface ` +
    `"${first.vmNetwork}"${which} gets no persistent addresses; remove interfaces that are not needed`;
  const notice = { reason: EventReason.ClaimLimit, message, regarding: regardingKind(owner, observed) };
  return [{ kind: 'refuse', reason: message, notice }];
}

interface ClaimAssignment {
  byClaim: Map<OwnedClaim, DesiredClaim>;
  interfaces: Set<DesiredClaim>;
}

/** Which claim serves which interface: one claim each, and one that stays before one that is being deleted. */
function assignClaims(
  demands: readonly OwnerClaims[],
  owned: readonly OwnedClaim[],
  { name }: ObservedWorkload,
): ClaimAssignment {
  const byClaim = new Map<OwnedClaim, DesiredClaim>();
  const interfaces = new Set<DesiredClaim>();
  for (const { owner, claims: wantedOnes } of demands) {
    const own = owned.filter((candidate) => candidate.owner.uid === owner.uid);
    const networkOf = new Map(own.map((candidate) => [candidate, networkServedBy(candidate, wantedOnes, name)]));
    for (const wanted of wantedOnes) {
      const rank = ({ claim }: OwnedClaim) =>
        (isBeingDeleted(claim) ? 2 : 0) + (claim.metadata.name === claimName(name, wanted.vmNetwork) ? 0 : 1);
      const [best] = own
        .filter((candidate) => !byClaim.has(candidate) && candidate.claim.spec.network === wanted.network)
        .filter((candidate) => networkOf.get(candidate) === wanted.vmNetwork)
        .sort((a, b) => rank(a) - rank(b) || a.claim.metadata.name.localeCompare(b.claim.metadata.name));
      if (best === undefined) continue;
      byClaim.set(best, wanted);
      interfaces.add(wanted);
    }
  }
  return { byClaim, interfaces };
}

function networkServedBy({ claim }: OwnedClaim, wantedOnes: readonly DesiredClaim[], vm: string): string | undefined {
  const sameNetwork = wantedOnes.filter(({ network }) => network === claim.spec.network);
  const networks = sameNetwork.map(({ vmNetwork, podInterface }) => ({ name: vmNetwork, podInterface }));
  return servedVmNetwork(claim, vm, networks);
}

function planClaim(
  owned: OwnedClaim,
  wanted: DesiredClaim | undefined,
  demands: readonly OwnerClaims[],
  observed: ObservedWorkload,
): Action {
  const { claim, owner, recordedOwnerUid, state } = owned;
  if (wanted === undefined && !isManagedByHoldfast(claim)) {
    return { kind: 'keep', claim, reason: 'it names this owner, but it is not ours' };
  }
  const set = changesTo(claim, owner, wanted && withoutLateRequest(owned, wanted, observed));
  if (owner.uid !== recordedOwnerUid && set !== undefined) {
    const reason = `its owner is ${owner.kind} ${owner.uid} now, not ${recordedOwnerUid}`;
    return { kind: 'update', claim, owner, set, reason };
  }
  if (state !== 'alive') return releaseAfterOwner(owned, observed);
  if (wanted === undefined) return releaseAfterUnplug(owned, demands, observed);
  if (isBeingDeleted(claim)) return releaseAfterUserDelete(owned, wanted, observed);
  if (set !== undefined) {
    return { kind: 'update', claim, owner, set, reason: `it differs in ${Object.keys(set).join(', ')}` };
  }
  return { kind: 'keep', claim, reason: 'its interface wants it' };
}

/** By our finalizer, which kubevirt/ipam-extensions sets, too, or by what only we note. */
function isManagedByHoldfast({ metadata: { finalizers, annotations } }: IPAMClaim): boolean {
  return finalizers?.includes(CLAIM_FINALIZER) === true || annotations?.[CLAIM_OWNER_UID] !== undefined;
}

function refuseLateRequest(owned: OwnedClaim, wanted: DesiredClaim, observed: ObservedWorkload): Action[] {
  const notice = lateRequestEvent(owned, wanted, observed);
  if (notice === undefined) return [];
  const { message } = notice;
  return [{ kind: 'refuse', reason: message, notice: { ...notice, regarding: regardingKind(owned.owner, observed) } }];
}

function reportProblems({ owner, problems }: OwnerClaims, observed: ObservedWorkload): Action[] {
  return problems.map(({ reason, message }) => ({
    kind: 'refuse',
    reason: message,
    notice: { reason, message, regarding: regardingKind(owner, observed) },
  }));
}
