import { type IPAMClaim, claimName } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID, EventReason } from '../../api/names.js';
import { servedNetwork } from '../../api/vm-claims.js';
import type { Action } from './action.js';
import { noticeOfLateRequest, withoutLateRequest } from './address-requests.js';
import { changesTo } from './claim-object.js';
import { type Demand, desired } from './desired.js';
import { type WantedInterface } from './wanted-interface.js';
import { endByUser, endOfInterface, endOfOwner, endOwnerless } from './endings.js';
import type { Observed } from './observed.js';
import { type OwnedClaim, ownedClaims } from './ownership.js';
import { provide, regarding } from './provide.js';

/** What shall be done about the claims of one workload. Pure: the same observation gives the same actions. */
export function plan(observed: Observed): Action[] {
  const owned = ownedClaims(observed);
  const demands = desired(observed, owned);
  const served = assign(demands, owned, observed);
  const taken = new Set<string>();
  return [
    ...owned.map((claim) => judge(claim, served.byClaim.get(claim), demands, observed)),
    ...endOwnerless(observed),
    ...demands.flatMap((demand) => {
      const lacking = demand.interfaces.filter((wanted) => !served.interfaces.has(wanted));
      const room = roomFor(demand, owned, observed);
      return [
        ...lacking.slice(0, room).map((wanted) => provide({ demand, wanted, observed, owned, taken })),
        ...refuseExcess(demand, lacking.slice(room), observed),
      ];
    }),
    ...demands.flatMap((demand) => refuseProblems(demand, observed)),
    ...[...served.byClaim].flatMap(([claim, wanted]) => refuseLateRequest(claim, wanted, observed)),
  ];
}

/** How many more claims the owner may have. Claims that exist are never released because of the limit. */
function roomFor({ owner }: Demand, owned: readonly OwnedClaim[], { maxClaims }: Observed): number {
  return Math.max(0, maxClaims - owned.filter((claim) => claim.owner.uid === owner.uid).length);
}

function refuseExcess({ owner }: Demand, excess: readonly WantedInterface[], observed: Observed): Action[] {
  const [first] = excess;
  if (first === undefined) return [];
  const { namespace, name, maxClaims } = observed;
  const which = excess.length === 1 ? '' : ` and ${excess.length - 1} more`;
  const message =
    `${owner.kind} ${joinKey(namespace, name)} may have ${maxClaims} IPAMClaims (--max-claims-per-vm of the controller): interface ` +
    `"${first.vmNetwork}"${which} gets no persistent addresses; remove interfaces that are not needed`;
  const notice = { reason: EventReason.ClaimLimit, message, regarding: regarding(owner, observed) };
  return [{ kind: 'refuse', reason: message, notice }];
}

interface Assignment {
  byClaim: Map<OwnedClaim, WantedInterface>;
  interfaces: Set<WantedInterface>;
}

/** Which claim serves which interface: one claim each, and one that stays before one that is being deleted. */
function assign(demands: readonly Demand[], owned: readonly OwnedClaim[], { name }: Observed): Assignment {
  const byClaim = new Map<OwnedClaim, WantedInterface>();
  const interfaces = new Set<WantedInterface>();
  for (const { owner, interfaces: wantedOnes } of demands) {
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

function networkServedBy(
  { claim }: OwnedClaim,
  wantedOnes: readonly WantedInterface[],
  vm: string,
): string | undefined {
  const sameNetwork = wantedOnes.filter(({ network }) => network === claim.spec.network);
  const networks = sameNetwork.map(({ vmNetwork, podInterface }) => ({ name: vmNetwork, podInterface }));
  return servedNetwork(claim, vm, networks);
}

function judge(
  owned: OwnedClaim,
  wanted: WantedInterface | undefined,
  demands: readonly Demand[],
  observed: Observed,
): Action {
  const { claim, owner, namedUid, state } = owned;
  if (wanted === undefined && !isOurs(claim)) {
    return { kind: 'keep', claim, reason: 'it names this owner, but it is not ours' };
  }
  const set = changesTo(claim, owner, wanted && withoutLateRequest(owned, wanted, observed));
  if (owner.uid !== namedUid && set !== undefined) {
    const reason = `its owner is ${owner.kind} ${owner.uid} now, not ${namedUid}`;
    return { kind: 'update', claim, owner, set, reason };
  }
  if (state !== 'alive') return endOfOwner(owned, observed);
  if (wanted === undefined) return endOfInterface(owned, demands, observed);
  if (isBeingDeleted(claim)) return endByUser(owned, wanted, observed);
  if (set !== undefined) {
    return { kind: 'update', claim, owner, set, reason: `it differs in ${Object.keys(set).join(', ')}` };
  }
  return { kind: 'keep', claim, reason: 'its interface wants it' };
}

/** By our finalizer, which kubevirt/ipam-extensions sets, too, or by what only we note. */
function isOurs({ metadata: { finalizers, annotations } }: IPAMClaim): boolean {
  return finalizers?.includes(CLAIM_FINALIZER) === true || annotations?.[CLAIM_OWNER_UID] !== undefined;
}

function refuseLateRequest(owned: OwnedClaim, wanted: WantedInterface, observed: Observed): Action[] {
  const notice = noticeOfLateRequest(owned, wanted, observed);
  if (notice === undefined) return [];
  const { message } = notice;
  return [{ kind: 'refuse', reason: message, notice: { ...notice, regarding: regarding(owned.owner, observed) } }];
}

function refuseProblems({ owner, problems }: Demand, observed: Observed): Action[] {
  return problems.map(({ reason, message }) => ({
    kind: 'refuse',
    reason: message,
    notice: { reason, message, regarding: regarding(owner, observed) },
  }));
}
