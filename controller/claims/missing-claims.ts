import { type ClaimOwner, type IPAMClaim, claimName, swappedClaimName } from '../../api/ipam-claim.js';
import { controllerOf, isBeingDeleted, joinKey } from '../../api/meta.js';
import { EventReason, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { describeClaimOwner, isForVmNetwork, hasNoOwner } from '../../api/vm-claims.js';
import type { Action } from './action.js';
import type { WorkloadEvent } from './workload-event.js';
import { requestsClaim } from './references.js';
import { changesTo, newClaim } from './claim-object.js';
import type { OwnerClaims } from './desired.js';
import type { DesiredClaim } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
import { type OwnedClaim, runningLaunchersOf } from './ownership.js';

interface MissingClaim {
  demand: OwnerClaims;
  wanted: DesiredClaim;
  observed: ObservedWorkload;
  owned: readonly OwnedClaim[];
  /** Names that this plan gives away already. */
  taken: Set<string>;
}

/** Gives an interface the claim that it lacks: a new one, or one that belongs to nobody; or says who has its name. */
export function planMissingClaim(request: MissingClaim): Action {
  const { demand, wanted, observed, owned, taken } = request;
  const { owner } = demand;
  const { namespace } = observed;
  const { name, beside } = chooseName(request);
  if (wanted.request?.kind === 'invalid') return { kind: 'wait', claimName: name, reason: wanted.request.problem };
  if (taken.has(name)) {
    return { kind: 'wait', claimName: name, reason: 'another claim of this name is made first' };
  }
  taken.add(name);
  const predecessor = owned.find((other) => isPredecessor(other, request));
  if (predecessor !== undefined) return waitForOther(predecessor, request);
  const occupant = observed.claims.find((claim) => claim.metadata.name === name);
  if (occupant === undefined) {
    const claim = newClaim({ namespace, name }, owner, wanted);
    const reason = `interface ${wanted.vmNetwork} wants persistent addresses`;
    return { kind: 'create', claim, ...(beside !== undefined && { beside }), reason };
  }
  if (hasNoOwner(occupant) && !isBeingDeleted(occupant) && occupant.spec.network === wanted.network) {
    const set = changesTo(occupant, owner, wanted) ?? {};
    return { kind: 'update', claim: occupant, owner, set, reason: 'it belongs to nobody: the interface adopts it' };
  }
  const its = owned.find(({ claim }) => claim === occupant);
  return its === undefined ? refuseForeign(occupant, request) : waitForOther(its, request);
}

/** A claim of another owner, for the same interface, that may yet be inherited, whatever its name. */
function isPredecessor({ claim, owner, state }: OwnedClaim, { demand, wanted, observed }: MissingClaim): boolean {
  return (
    (state !== 'alive' || isAdoptionPending(observed)) &&
    owner.uid !== demand.owner.uid &&
    claim.spec.network === wanted.network &&
    isForVmNetwork(claim, observed.name, wanted.vmNetwork)
  );
}

/** On whom a user looks for what concerns the owner. */
export function regardingKind(owner: Pick<ClaimOwner, 'uid'>, { vm }: ObservedWorkload): WorkloadEvent['regarding'] {
  return vm?.metadata.uid === owner.uid ? 'vm' : 'vmi';
}

/**
 * The first name, unless a claim of the same interface on another network is seen to have it, or a launcher that runs waits for the second:
 * only what is seen may decide, since a name that is thought taken would give one interface two claims.
 */
function chooseName({ demand, wanted, observed, owned }: MissingClaim): { name: string; beside?: IPAMClaim } {
  const { vmNetwork, network } = wanted;
  const first = claimName(observed.name, vmNetwork);
  const second = swappedClaimName(observed.name, vmNetwork, network);
  const other = owned.find(
    ({ claim, owner }) =>
      claim.metadata.name === first &&
      owner.uid === demand.owner.uid &&
      claim.spec.network !== network &&
      isForVmNetwork(claim, observed.name, vmNetwork),
  );
  if (other !== undefined) return { name: second, beside: other.claim };
  const isAsked = runningLaunchersOf(demand.owner.uid, observed).some((pod) => requestsClaim(pod, second, wanted));
  return { name: isAsked ? second : first };
}

/** The name is with another claim of this workload, which ends or is handed on by its own rules. */
function waitForOther({ claim, owner, state }: OwnedClaim, { demand, wanted, observed }: MissingClaim): Action {
  const { name } = claim.metadata;
  const holder = `${owner.kind} ${owner.name}`;
  if (owner.uid === demand.owner.uid) {
    return { kind: 'wait', claimName: name, reason: 'an earlier claim of this owner has its name' };
  }
  if (state !== 'alive') {
    const message =
      `IPAMClaim ${joinKey(observed.namespace, name)} still belongs to an earlier ${holder}: ` +
      `interface ${wanted.vmNetwork} gets its own as soon as that one is gone`;
    const notice: WorkloadEvent = {
      reason: EventReason.PredecessorClaim,
      message,
      regarding: regardingKind(demand.owner, observed),
    };
    return { kind: 'wait', claimName: name, reason: message, notice };
  }
  if (demand.owner.kind === VIRTUAL_MACHINE_KIND && isAdoptionPending(observed)) {
    return { kind: 'wait', claimName: name, reason: `it belongs to ${holder}, which this VM has yet to adopt` };
  }
  return refuseForeign(claim, { demand, wanted, observed });
}

/** There are a VM and a VMI that nobody controls: the VM adopts it, or has just left it behind. */
function isAdoptionPending({ vm, vmi }: ObservedWorkload): boolean {
  return vm !== undefined && vmi !== undefined && controllerOf(vmi) === undefined;
}

function refuseForeign(
  claim: IPAMClaim,
  { demand, wanted, observed }: Pick<MissingClaim, 'demand' | 'wanted' | 'observed'>,
): Action {
  const { name } = claim.metadata;
  const message =
    `IPAMClaim ${joinKey(observed.namespace, name)} ${describeClaimOwner(claim, demand.owner)}; delete it or rename the interface ` +
    `"${wanted.vmNetwork}": the VM cannot have persistent addresses on network "${wanted.network}" until it is gone`;
  const notice: WorkloadEvent = {
    reason: EventReason.ForeignClaim,
    message,
    regarding: regardingKind(demand.owner, observed),
  };
  return { kind: 'refuse', reason: message, notice, blockedBy: name };
}
