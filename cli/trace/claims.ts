import { formatCount } from '../../addressing/address-states.js';
import { formatAddress, readAddress } from '../../addressing/address/address.js';
import { describeLock } from '../../addressing/lease/lease-network-data.js';
import { type AddressLease, describeLeaseOwner } from '../../api/address-lease.js';
import { type AddressPool, type ShownFamilyCounts, familyCountsOf } from '../../api/address-pool.js';
import { BAD_CLAIM_CONDITIONS, PoolCondition } from '../../api/conditions.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { asList } from '../../api/json.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { CLAIM_REQUESTED_ADDRESSES } from '../../api/names.js';
import { isTerminal, scheduledTime } from '../../api/pod.js';
import { docsUrl } from '../../process/docs-url.js';
import { isUnread, valueOf } from '../reader.js';
import { unansweredClaimEvent } from './events.js';
import type { ObservedVmTrace } from './observed.js';
import { type TraceFinding, type TraceNode, findingOf, traceNode, unreadNodes } from './tree.js';

/** A claim has one address of each family. */
const MAX_ADDRESSES = 8;
const MAX_POOLS = 4;
/** A VM may have been changed many times while the process guest did not run. */
const MAX_LOCKED = 16;
/** The process guest needs a second to remove an address from a Secret. */
const UNLOCK_MS = 60_000;

/** Tells the story of the leases that a claim has or should have. */
function traceLeases(observed: ObservedVmTrace, claim: IPAMClaim): TraceNode[] {
  const { leases } = observed;
  if (leases.kind !== 'found') return unreadNodes('AddressLease', '', leases);
  const shown = claimAddressesOf(claim);
  const own = leases.value.filter(
    ({ spec }) => spec.owner?.kind === 'IPAMClaim' && spec.owner.uid === claim.metadata.uid,
  );
  const unshown = own.filter(({ spec }) => !shown.includes(spec.address) && spec.releasedAt === undefined);
  return [
    ...shown.flatMap((address) => traceAddress(address, claim, observed)),
    ...unshown.slice(0, MAX_ADDRESSES).map((lease) => leaseNode(lease, [])),
    ...requestedBy(claim).flatMap((address) => {
      const other = leases.value.find(({ spec }) => spec.address === address && spec.owner?.uid !== claim.metadata.uid);
      return other === undefined ? [] : [leaseNode(other, [])];
    }),
  ];
}

/** Tells which released addresses nobody gets, because a Secret with network data of the VM may still hold them. */
export function traceLockedLeases({ leases, namespace, name, now }: ObservedVmTrace): TraceNode[] {
  const locked = valueOf(leases, []).filter(({ spec: { networkData, releasedAt } }) => {
    const isOfVm = networkData?.namespace === namespace && networkData.owner.name === name;
    return isOfVm && releasedAt !== undefined;
  });
  return locked.slice(0, MAX_LOCKED).map((lease) => {
    const isNew = now - Date.parse(lease.spec.releasedAt ?? '') < UNLOCK_MS;
    const message = `${lease.spec.address} goes to no other VM, because the Secret may still hold it`;
    const remedy = `see the pods of holdfast-guest, and their logs. If guest was removed for good: ${docsUrl('how-to/uninstall.md')}`;
    return leaseNode(lease, [isNew ? { health: 'progress', message } : { health: 'warning', message, remedy }]);
  });
}

/** Tells the state of the pools that may serve a claim; nothing if the user may not read pools. */
function tracePools({ pools }: ObservedVmTrace, claim: IPAMClaim, used: readonly AddressLease[]): TraceNode[] {
  const named = new Set(used.map(({ spec }) => spec.pool));
  const ofNetwork = valueOf(pools, []).filter(({ spec }) => spec.network === claim.spec.network);
  const chosen = ofNetwork.filter(({ metadata }) => named.has(metadata.name));
  return (chosen.length === 0 ? ofNetwork : chosen).slice(0, MAX_POOLS).map(tracePool);
}

/** Returns the addresses that a claim shows, in canonical text; those that cannot be read are left out. */
export function claimAddressesOf(claim: IPAMClaim): string[] {
  return readAddresses(claim.status?.ips ?? []);
}

/** Returns the addresses for which a claim waits: those that it requests while it shows none. */
export function requestedBy({ metadata, status }: IPAMClaim): string[] {
  const text = metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  if (text === undefined || (status?.ips ?? []).length > 0) return [];
  try {
    return readAddresses(asList(JSON.parse(text)));
  } catch {
    return [];
  }
}

function readAddresses(texts: readonly unknown[]): string[] {
  return texts
    .slice(0, MAX_ADDRESSES)
    .flatMap((text) => readAddress(text) ?? [])
    .map(formatAddress);
}

function traceAddress(address: string, claim: IPAMClaim, { leases, pools }: ObservedVmTrace): TraceNode | TraceNode[] {
  const there = valueOf(leases, []).filter(({ spec }) => spec.address === address);
  const own = there.find(({ spec }) => spec.owner?.uid === claim.metadata.uid);
  if (own !== undefined) return leaseNode(own, own.spec.releasedAt === undefined ? [] : [releasedFinding(own)]);
  const [other] = there;
  if (other !== undefined) return leaseNode(other, [foreignFinding(other, claim)]);
  // the lease of another owner has the name of the pool's address space
  if (isUnread(pools)) return unreadNodes('AddressLease', address, pools);
  const message = `IPAMClaim ${claim.metadata.name} has ${address} in its status, and no lease for it`;
  const remedy =
    'ipam leases it to the claim again, and gives it to no other owner. If this lasts, see the log of ipam';
  const findings: TraceFinding[] = [{ health: 'wrong', message, remedy }];
  return traceNode({ kind: 'AddressLease', name: address, state: 'does not exist', findings });
}

function leaseNode(lease: AddressLease, findings: TraceFinding[]): TraceNode {
  const { node, releasedAt, networkData, pool } = lease.spec;
  const states = [
    describeHolder(lease),
    ...(releasedAt !== undefined ? [`released at ${releasedAt}`] : node ? [`on ${node}`] : []),
    ...(releasedAt !== undefined && networkData !== undefined ? [describeLock(networkData)] : []),
    `pool ${pool}`,
  ];
  return traceNode({ kind: 'AddressLease', name: lease.metadata.name, state: states.join(', '), findings });
}

function releasedFinding({ spec }: AddressLease): TraceFinding {
  const message = `${spec.address} was released although its claim exists`;
  return { health: 'wrong', message, remedy: 'ipam leases it to the claim again. If this lasts, see the log of ipam' };
}

/** Returns who has the address, for example `reserved`. */
function describeHolder({ spec: { owner, quarantine } }: AddressLease): string {
  if (quarantine !== undefined) return `quarantined until ${quarantine.until}, because ${quarantine.mac} has it`;
  return owner === undefined ? 'reserved' : describeLeaseOwner(owner);
}

function foreignFinding(lease: AddressLease, claim: IPAMClaim): TraceFinding {
  const { address, owner, quarantine } = lease.spec;
  const holder = `${owner === undefined ? '' : 'leased to '}${describeHolder(lease)}`;
  const message = `IPAMClaim ${claim.metadata.name} has ${address} in its status, but the address is ${holder}`;
  const remedy =
    quarantine === undefined
      ? 'restart the VM after ipam has corrected the claim, or free the address: kubectl holdfast release'
      : `remove that host, and run kubectl delete alease ${lease.metadata.name}`;
  return { health: 'wrong', reason: 'IPAddressConflict', message, remedy };
}

function tracePool(pool: AddressPool): TraceNode {
  const { status } = pool;
  const ready = status?.conditions?.find(({ type }) => type === PoolCondition.Ready);
  const findings: TraceFinding[] = [];
  if (ready?.status === 'False') findings.push({ health: 'wrong', reason: ready.reason, message: ready.message });
  const freeOf = ({ family, free, capacity }: ShownFamilyCounts) =>
    `${family && `${family}: `}${formatCount(free)} of ${formatCount(capacity)} free`;
  const counts = status === undefined ? 'no status yet' : familyCountsOf(status).map(freeOf).join(', ');
  const state = isBeingDeleted(pool) ? `being deleted, ${counts}` : counts;
  return traceNode({ kind: 'AddressPool', name: pool.metadata.name, state, findings });
}

/** An IPAM answers a claim within a second. */
const ANSWER_MS = 60_000;

/**
 * Tells the story of a claim that belongs to the VM.
 * @param isHoldfast whether Holdfast's IPAM serves its network; undefined if that is unknown
 */
export function traceClaim(observed: ObservedVmTrace, claim: IPAMClaim, isHoldfast: boolean | undefined): TraceNode {
  const ips = claim.status?.ips ?? [];
  const addresses = ips.length === 0 ? 'no addresses' : ips.slice(0, 8).join(' ');
  const own = valueOf(observed.leases, []).filter(({ spec }) => spec.owner?.uid === claim.metadata.uid);
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
    findings: [...deletionFindings(claim), ...conditionFindings(claim), ...answerFindings(observed, claim, isHoldfast)],
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
function answerFindings(observed: ObservedVmTrace, claim: IPAMClaim, isHoldfast: boolean | undefined): TraceFinding[] {
  const { ips = [], conditions = [] } = claim.status ?? {};
  if (ips.length > 0 || conditions.length > 0 || isBeingDeleted(claim)) return [];
  const event = unansweredClaimEvent(observed, claim.metadata.name);
  if (event !== undefined) return [event];
  const since = answerableSince(observed, claim, isHoldfast);
  const waits = 'it waits for its addresses';
  if (since === Infinity)
    return [{ health: 'progress', message: `${waits}: its IPAM may answer only when a pod of the VM has a node` }];
  if (observed.now - since < ANSWER_MS) return [{ health: 'progress', message: waits }];
  const message = 'no IPAM has given it addresses, nor said why';
  return [{ health: 'wrong', message, remedy: 'see the log of ipam, or of the IPAM to which the NAD delegates' }];
}

/** Whether Holdfast serves the claim although its NAD does not delegate to it. */
function hasGuestPool({ pools, namespace }: ObservedVmTrace, claim: IPAMClaim): boolean {
  return valueOf(pools, []).some(
    ({ spec: { network, guest, namespaces } }) =>
      network === claim.spec.network && guest !== undefined && namespaces?.includes(namespace) !== false,
  );
}

/** Since when the IPAM of a claim can answer it. Before a launcher has a node, no IPAM of a CNI plugin has seen the claim: then infinite. */
function answerableSince(observed: ObservedVmTrace, claim: IPAMClaim, isHoldfast: boolean | undefined): number {
  if (isHoldfast ?? hasGuestPool(observed, claim)) return Date.parse(claim.metadata.creationTimestamp ?? '');
  const active = valueOf(observed.pods, []).filter((pod) => !isTerminal(pod) && !isBeingDeleted(pod));
  return Math.min(...active.map((pod) => scheduledTime(pod) ?? Infinity));
}
