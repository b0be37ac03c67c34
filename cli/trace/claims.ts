import { BAD_CLAIM_CONDITIONS } from '../../api/conditions.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { unansweredClaimEvent } from './events.js';
import { leasesOfClaim, traceLeases, tracePools } from './leases.js';
import type { ObservedVmTrace } from './observed.js';
import { findingOf } from './remedies.js';
import { type TraceFinding, type TraceNode, traceNode } from './tree.js';

/** An IPAM answers a claim within a second. */
const PATIENCE_MS = 60_000;

/**
 * Tells the story of a claim that belongs to the VM.
 * @param isHoldfast whether Holdfast's IPAM serves its network; undefined if that is unknown
 */
export function traceClaim(observed: ObservedVmTrace, claim: IPAMClaim, isHoldfast: boolean | undefined): TraceNode {
  const ips = claim.status?.ips ?? [];
  const addresses = ips.length === 0 ? 'no addresses' : ips.slice(0, 8).join(' ');
  const own = leasesOfClaim(observed, claim);
  const isUnknown = isHoldfast === undefined && observed.leases.kind !== 'found';
  const isOurs = isHoldfast === true || own.length > 0 || isUnknown;
  const states = [
    addresses,
    ...(isBeingDeleted(claim) ? ['being deleted'] : []),
    ...(isHoldfast === false && own.length === 0 ? ['served by another IPAM'] : []),
  ];
  return traceNode({
    kind: 'IPAMClaim',
    name: joinKey(observed.namespace, claim.metadata.name),
    state: states.join(', '),
    findings: [...deletionFindings(claim), ...conditionFindings(claim), ...answerFindings(observed, claim)],
    children: isOurs ? [...traceLeases(observed, claim), ...tracePools(observed, claim, own)] : [],
  });
}

function deletionFindings(claim: IPAMClaim): TraceFinding[] {
  if (!isBeingDeleted(claim)) return [];
  const message = 'it is being deleted: it serves the pods of its VM until the last one ends';
  return [{ health: 'progress', message }];
}

function conditionFindings({ status }: IPAMClaim): TraceFinding[] {
  return BAD_CLAIM_CONDITIONS.flatMap(({ type, status: bad, health }) => {
    const condition = status?.conditions?.find((each) => each.type === type);
    return condition?.status === bad ? [findingOf(health, condition.reason, condition.message)] : [];
  });
}

/** A claim that no IPAM has answered. */
function answerFindings(observed: ObservedVmTrace, claim: IPAMClaim): TraceFinding[] {
  const { ips = [], conditions = [] } = claim.status ?? {};
  if (ips.length > 0 || conditions.length > 0 || isBeingDeleted(claim)) return [];
  const event = unansweredClaimEvent(observed, claim.metadata.name);
  if (event !== undefined) return [event];
  const isNew = observed.now - Date.parse(claim.metadata.creationTimestamp ?? '') < PATIENCE_MS;
  if (isNew) return [{ health: 'progress', message: 'it waits for its addresses' }];
  const message = 'no IPAM has given it addresses, nor said why';
  return [{ health: 'wrong', message, remedy: 'see the log of ipam, or of the IPAM to which the NAD delegates' }];
}
