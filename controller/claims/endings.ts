import { nadOf } from '../../api/ipam-claim.js';
import { secondaryNetworks } from '../../api/kubevirt.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_VM_NETWORK, ORPHAN_FINALIZER } from '../../api/names.js';
import { isTerminal } from '../../api/pod.js';
import { isOwnerless, ownerOfVmi } from '../../api/vm-claims.js';
import type { Action } from './action.js';
import { carries, refersTo } from './carrying.js';
import { successorOf } from './claim-object.js';
import type { Demand } from './desired.js';
import type { WantedInterface } from './wanted-interface.js';
import type { Observed } from './observed.js';
import { type OwnedClaim, isInUse, launchersOf } from './ownership.js';

/** When a claim may go: each function says whether it goes or, for now, why not. */

/** The owner is being deleted, or gone. */
export function endOfOwner(owned: OwnedClaim, observed: Observed): Action {
  const { owner, state } = owned;
  const { vm } = observed;
  const subject = `${owner.kind} ${owner.uid} is ${state === 'gone' ? 'gone' : 'being deleted'}`;
  if (vm?.metadata.uid === owner.uid && vm.metadata.finalizers?.includes(ORPHAN_FINALIZER)) {
    return release(owned, `${subject}, but leaves its VMI behind`, subject);
  }
  const hold = isInUse(owned, observed) ? `${subject}, but a VMI or launcher of it is left` : undefined;
  return release(owned, hold, subject);
}

/** A user deleted it while its VM lives. */
export function endByUser(owned: OwnedClaim, wanted: WantedInterface, observed: Observed): Action {
  const hold = isInUse(owned, observed) ? 'it is being deleted while its VM runs: it serves to the end' : undefined;
  return release(owned, hold, 'it was deleted while its VM lives: a successor follows', wanted);
}

/** The owner lives, but has no such interface any more. */
export function endOfInterface(owned: OwnedClaim, demands: readonly Demand[], observed: Observed): Action {
  const { claim, owner } = owned;
  const vmNetwork = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
  if (vmNetwork === undefined) return endOfUnknown(owned, observed);
  const served = demands.some(
    (demand) => demand.owner.uid === owner.uid && demand.interfaces.some((wanted) => wanted.vmNetwork === vmNetwork),
  );
  const swapped = served || isOnOtherNetwork(owned, vmNetwork, observed);
  const carried = launchersOf(owner.uid, observed).some((pod) => carries(pod, claim, observed));
  // what the VMI reports of a swapped interface is that of its other claim or network
  const plugged = carried || (!swapped && isReported(owned, vmNetwork, observed));
  const hold = plugged ? 'its interface is not wanted any more, but still plugged' : undefined;
  return release(
    owned,
    hold,
    swapped ? 'its interface has another claim or network now' : lossOf(owned, vmNetwork, observed),
  );
}

/** An interface that is there loses a claim which was deleted, and gets no other. */
function lossOf({ owner }: OwnedClaim, vmNetwork: string, { vm, vmi, namespace }: Observed): string {
  const specs = [
    ...(vm?.metadata.uid === owner.uid ? [vm.spec?.template?.spec] : []),
    ...(vmi !== undefined && ownerOfVmi(vmi).uid === owner.uid ? [vmi.spec] : []),
  ];
  const isThere = specs
    .flatMap((spec) => secondaryNetworks(spec, namespace))
    .some(({ name, absent }) => name === vmNetwork && !absent);
  return isThere
    ? 'it was deleted, and its network, namespace or feature gate allows no new one'
    : 'its interface is unplugged';
}

function isReported({ owner }: OwnedClaim, vmNetwork: string, { vmi }: Observed): boolean {
  if (vmi === undefined || ownerOfVmi(vmi).uid !== owner.uid) return false;
  return vmi.status?.interfaces?.some(({ name }) => name === vmNetwork) ?? false;
}

function isOnOtherNetwork({ claim, owner }: OwnedClaim, vmNetwork: string, observed: Observed): boolean {
  const { vmi, namespace, networks } = observed;
  if (vmi === undefined || ownerOfVmi(vmi).uid !== owner.uid) return false;
  const current = secondaryNetworks(vmi.spec, namespace).find(({ name }) => name === vmNetwork);
  if (current === undefined) return false;
  const nad = joinKey(current.nad.namespace, current.nad.name);
  const lookup = networks.get(nad);
  const network = lookup?.found && lookup.config.ok ? lookup.config.network.name : claim.spec.network;
  return nad !== nadOf(claim) || network !== claim.spec.network;
}

/** kubevirt/ipam-extensions made it, for an interface that is not ours to judge, as that of a primary network. */
function endOfUnknown(owned: OwnedClaim, observed: Observed): Action {
  const { claim } = owned;
  if (!isBeingDeleted(claim)) return { kind: 'keep', claim, reason: 'for which interface it was made is not known' };
  const hold = isInUse(owned, observed) ? 'it is being deleted while its VM runs' : undefined;
  return release(owned, hold, 'it was deleted');
}

/**
 * Claims that nobody is known to own and that a user deleted, with our finalizer on them: those that kubevirt/ipam-extensions made, whose owner was
 * taken away by `--cascade=orphan`.
 */
export function endOwnerless(observed: Observed): Action[] {
  const running = observed.launchers.filter((pod) => !isTerminal(pod));
  return observed.claims
    .filter((claim) => isOwnerless(claim) && isBeingDeleted(claim))
    .filter((claim) => claim.metadata.finalizers?.includes(CLAIM_FINALIZER))
    .map((claim) =>
      running.some((pod) => refersTo(pod, claim))
        ? waitFor(claim.metadata.name, 'it has no owner and is being deleted, but a launcher uses it')
        : { kind: 'release', claim, reason: 'it has no owner and was deleted' },
    );
}

/**
 * @param hold why the claim must stay for now
 * @param wanted where a successor shall follow
 */
function release(
  { claim, owner, state }: OwnedClaim,
  hold: string | undefined,
  why: string,
  wanted?: WantedInterface,
): Action {
  if (hold !== undefined) return waitFor(claim.metadata.name, hold);
  if (isBeingDeleted(claim) && !claim.metadata.finalizers?.includes(CLAIM_FINALIZER)) {
    return waitFor(claim.metadata.name, `${why}; finalizers of others hold it`);
  }
  return {
    kind: 'release',
    claim,
    ...(state === 'alive' && { ownerLives: true }),
    ...(wanted !== undefined && { successor: successorOf(claim, owner, wanted) }),
    reason: why,
  };
}

function waitFor(claimName: string, reason: string): Action {
  return { kind: 'wait', claimName, reason };
}
