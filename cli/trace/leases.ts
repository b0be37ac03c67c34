import type { AddressLease } from '../../api/address-lease.js';
import { PoolCondition } from '../../api/conditions.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { asList } from '../../api/json.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { CLAIM_REQUESTED_ADDRESSES } from '../../api/names.js';
import { formatAddress, readAddress } from '../../addressing/address/address.js';
import { describeLock } from '../../addressing/lease/lease-network-data.js';
import { valueOf } from '../reader.js';
import type { ObservedVmTrace } from './observed.js';
import { unreadFindings } from './remedies.js';
import { type TraceFinding, type TraceNode, traceNode } from './tree.js';

/** A claim has one address of each family. */
const MAX_ADDRESSES = 8;
const MAX_POOLS = 4;
/** A VM may have been changed many times while the process guest did not run. */
const MAX_LOCKED = 16;
/** The process guest needs a second to remove an address from a Secret. */
const PATIENCE_MS = 60_000;

/** Tells the story of the leases that a claim has or should have. */
export function traceLeases(observed: ObservedVmTrace, claim: IPAMClaim): TraceNode[] {
  const { leases } = observed;
  if (leases.kind !== 'found') {
    const findings = unreadFindings(leases);
    return [traceNode({ kind: 'AddressLease', name: '', state: 'not shown', findings })];
  }
  const shown = claimAddressesOf(claim);
  const own = leases.value.filter(
    ({ spec }) => spec.owner?.kind === 'IPAMClaim' && spec.owner.uid === claim.metadata.uid,
  );
  const unshown = own.filter(({ spec }) => !shown.includes(spec.address) && spec.releasedAt === undefined);
  return [
    ...shown.map((address) => traceAddress(address, claim, leases.value)),
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
    const isNew = now - Date.parse(lease.spec.releasedAt ?? '') < PATIENCE_MS;
    const message = `${lease.spec.address} goes to no other VM, because the Secret may still hold it`;
    const remedy =
      'see the pods of holdfast-guest, and their logs. If guest was removed for good: docs/how-to/uninstall.md';
    return leaseNode(lease, [isNew ? { health: 'progress', message } : { health: 'warning', message, remedy }]);
  });
}

/** Tells the state of the pools that may serve a claim; nothing if the user may not read pools. */
export function tracePools({ pools }: ObservedVmTrace, claim: IPAMClaim, used: readonly AddressLease[]): TraceNode[] {
  const named = new Set(used.map(({ spec }) => spec.pool));
  const ofNetwork = valueOf(pools, []).filter(({ spec }) => spec.network === claim.spec.network);
  const chosen = ofNetwork.filter(({ metadata }) => named.has(metadata.name));
  return (chosen.length === 0 ? ofNetwork : chosen).slice(0, MAX_POOLS).map(tracePool);
}

/** Returns the leases that belong to a claim. */
export function leasesOfClaim({ leases }: ObservedVmTrace, claim: IPAMClaim): AddressLease[] {
  return valueOf(leases, []).filter(({ spec }) => spec.owner?.uid === claim.metadata.uid);
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

function traceAddress(address: string, claim: IPAMClaim, leases: readonly AddressLease[]): TraceNode {
  const there = leases.filter(({ spec }) => spec.address === address);
  const own = there.find(({ spec }) => spec.owner?.uid === claim.metadata.uid);
  if (own !== undefined) return leaseNode(own, own.spec.releasedAt === undefined ? [] : [releasedFinding(own)]);
  const [other] = there;
  if (other !== undefined) return leaseNode(other, [foreignFinding(other, claim)]);
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
  return owner === undefined ? 'reserved' : `${owner.kind} ${joinKey(owner.namespace, owner.name)}`;
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
  const counts = status === undefined ? 'no status yet' : `${status.free} of ${status.capacity} free`;
  const state = isBeingDeleted(pool) ? `being deleted, ${counts}` : counts;
  return traceNode({ kind: 'AddressPool', name: pool.metadata.name, state, findings });
}
