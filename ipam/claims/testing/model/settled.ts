import type { LeaseOwner } from '../../../../api/address-lease.js';
import { type IPAMClaim, claimOwnerOf } from '../../../../api/ipam-claim.js';
import { type Condition, isBeingDeleted, objectKey } from '../../../../api/meta.js';
import {
  ADDRESS_DRAINING,
  AllocationReason,
  CLAIM_REQUESTED_ADDRESSES,
  CLAIM_REQUEST_ORIGIN,
  FORMER_ORIGIN,
  IPS_ALLOCATED,
  REQUEST_HONOURED,
} from '../../../../api/names.js';
import { type Address, type Family, formatAddress, parseAddress } from '../../../../addressing/address/address.js';
import { type Pool, addressesOf, compilePool, isDraining, isRequestable } from '../../../../addressing/pool/pool.js';
import { conditionOf } from '../../../../cluster/claim-conditions.js';
import { type Invariants, Violation, leasesHeldBy } from './invariants.js';
import type { IpamWorld } from './world.js';
import { bareAddress } from '../../../../test/bare-address.js';

/** Checks a settled world: every claim has its addresses or reports why not, and all leases have an owner that exists. */
export function checkSettled(world: IpamWorld, inUse: Invariants['inUse']): void {
  for (const name of inUse.keys()) checkRunning(world, name, inUse.get(name)?.addresses ?? []);
  for (const claim of world.list('ipamclaims')) checkClaim(world, claim);
  for (const { metadata, spec } of world.list('addressleases')) {
    if (spec.releasedAt !== undefined || spec.owner === undefined) continue;
    const isOfPod = world.list('pods').some((pod) => pod.metadata.uid === spec.owner?.uid);
    if (!isOfPod) checkOwner(world.claim(spec.owner.uid), metadata.name, spec.owner);
  }
}

function checkOwner(claim: IPAMClaim | undefined, lease: string, { workloadUID }: LeaseOwner): void {
  if (claim === undefined) throw new Violation(`${lease} has no owner any more`);
  const vm = claimOwnerOf(claim)?.uid;
  if (vm !== undefined && vm !== workloadUID) throw new Violation(`${lease} is not for ${vm}`);
}

/** Checks that no claim waits for an address that is neither leased nor shown by another claim. Call it once nothing cools down. */
export function checkWaitList(world: IpamWorld): void {
  const pool = poolOf(world);
  if (pool === undefined) return;
  const leased = world.list('addressleases').map(({ spec }) => parseAddress(spec.address));
  for (const claim of world.list('ipamclaims')) {
    const allocated = conditionOf(claim, IPS_ALLOCATED);
    if (allocated?.status !== 'False' || isBeingDeleted(claim)) continue;
    const shown = world
      .list('ipamclaims')
      .filter((other) => other !== claim)
      .flatMap(shownAddresses);
    checkWaitReason(claim, allocated, pool, [...leased, ...shown]);
  }
  const shown = world.list('ipamclaims').flatMap(shownAddresses);
  for (const claim of world.list('ipamclaims')) {
    const isUsed = world.get('pods', objectKey(claim)) !== undefined;
    checkDrained(claim, pool, [...leased, ...shown], isUsed);
  }
}

function poolOf(world: IpamWorld): Pool | undefined {
  const pool = world.get('addresspools', 'blue');
  const compiled = pool && compilePool(pool);
  return compiled?.ok === true ? compiled.pool : undefined;
}

function shownAddresses({ status }: IPAMClaim): Address[] {
  return (status?.ips ?? []).map((ip) => parseAddress(bareAddress(ip)));
}

function checkWaitReason(claim: IPAMClaim, { reason, message }: Condition, pool: Pool, used: readonly Address[]): void {
  if (reason === AllocationReason.Exhausted && !isFull(pool, used)) {
    throw new Violation(`${objectKey(claim)} waits although an address is free`);
  }
  const [text] = message.split(' ');
  const isUsed = used.some((address) => formatAddress(address) === text);
  if (reason === AllocationReason.Conflict && !isUsed) {
    throw new Violation(`${objectKey(claim)} waits for ${text ?? ''}, which is free`);
  }
}

function isFull(pool: Pool, used: readonly Address[]): boolean {
  return pool.families.some((family) => isFamilyFull(pool, family, used));
}

function isFamilyFull(pool: Pool, family: Family, used: readonly Address[]): boolean {
  const open = addressesOf(pool, family, 'open');
  const values = used.filter((address) => address.family === family).map(({ value }) => value);
  return BigInt(new Set(values.filter((value) => open.has(value))).size) >= open.size;
}

function checkClaim(world: IpamWorld, claim: IPAMClaim): void {
  const key = objectKey(claim);
  const allocated = conditionOf(claim, IPS_ALLOCATED);
  if (allocated === undefined) {
    // a claim that is being deleted gets no new address
    if (!isBeingDeleted(claim)) throw new Violation(`${key} says nothing`);
    return;
  }
  const held = leasesHeldBy(world, claim.metadata.uid).map(({ spec }) => spec.address);
  const ips = (claim.status?.ips ?? []).map(bareAddress);
  const surplus = held.filter((address) => !ips.includes(address));
  if (surplus.length > 0 && isSurplusForbidden(world, claim)) {
    throw new Violation(`${key} has ${surplus.join()} and does not show it`);
  }
  if (allocated.status === 'True' && !ips.every((ip) => held.includes(ip))) {
    throw new Violation(`${key} shows ${ips.join()} and has ${held.join()}`);
  }
  if (allocated.status === 'False' && allocated.message === '') throw new Violation(`${key} does not say why`);
  if (!isBeingDeleted(claim)) checkRequest(claim, ips, poolOf(world));
}

/** Surplus leases stay while a pod uses the claim, no pool serves it, or another host has the address that it requests. */
function isSurplusForbidden(world: IpamWorld, claim: IPAMClaim): boolean {
  const isServed = world.get('addresspools', 'blue') !== undefined;
  const waitsForHost = conditionOf(claim, IPS_ALLOCATED)?.message.includes(' is quarantined by ') === true;
  return isServed && !waitsForHost && !isBeingDeleted(claim) && world.get('pods', objectKey(claim)) === undefined;
}

/** Checks that a claim that no pod uses has left the draining ranges, unless it requests an address of them or nothing else is free. */
function checkDrained(claim: IPAMClaim, pool: Pool, used: readonly Address[], isUsed: boolean): void {
  const requested = isFormer(claim) ? '[]' : requestTextOf(claim);
  const draining = shownAddresses(claim).filter((address) => isDraining(pool, address));
  const condition = conditionOf(claim, ADDRESS_DRAINING);
  if (isBeingDeleted(claim) || conditionOf(claim, IPS_ALLOCATED)?.status !== 'True') return;
  if (draining.length > 0 !== (condition !== undefined)) {
    throw new Violation(
      `${objectKey(claim)} shows ${draining.map(formatAddress).join()}, and says ${condition?.message ?? 'nothing'}`,
    );
  }
  const left = draining.filter((address) => !requested.includes(formatAddress(address)));
  if (!isUsed && left.some(({ family }) => !isFamilyFull(pool, family, used)))
    throw new Violation(`${objectKey(claim)} stays in a draining range`);
}

/**
 * Checks that a claim shows the addresses that its running VM reports, if it shows addresses of the same families. A report alone gives no right to an
 * address whose lease a user deleted.
 */
function checkRunning(world: IpamWorld, name: string, addresses: readonly string[]): void {
  const claim = world.get('ipamclaims', `vms/${name}`);
  const pod = world.get('pods', `vms/${name}`);
  const isReported = pod?.metadata.annotations?.['k8s.v1.cni.cncf.io/network-status'] !== undefined;
  if (claim === undefined || !isReported || claimOwnerOf(claim) === undefined || isBeingDeleted(claim)) return;
  const shown = shownAddresses(claim).map(formatAddress);
  const isServed = world.get('addresspools', 'blue')?.spec.addressSpace === 'blue';
  const familiesOf = (texts: readonly string[]) => texts.map((text) => text.includes(':')).join();
  if (!isServed || familiesOf(shown) !== familiesOf(addresses)) return;
  if (addresses.some((address) => world.freedByUser.has(address))) return;
  if (shown.join() !== addresses.join()) {
    throw new Violation(`${name} shows ${shown.join()}, and its VM runs with ${addresses.join()}`);
  }
}

function requestTextOf({ metadata }: IPAMClaim): string {
  return metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES] ?? '[]';
}

/** Returns true if the claim's request repeats the addresses of a claim that is gone. */
function isFormer({ metadata }: IPAMClaim): boolean {
  return metadata.annotations?.[CLAIM_REQUEST_ORIGIN] === FORMER_ORIGIN;
}

function checkRequest(claim: IPAMClaim, ips: readonly string[], pool: Pool | undefined): void {
  const honoured = conditionOf(claim, REQUEST_HONOURED);
  const text = requestTextOf(claim);
  const isReadable = text.startsWith('[');
  const requested = isReadable ? (JSON.parse(text) as string[]).map(bareAddress) : [];
  const hasOther = (address: string) => ips.some((ip) => ip !== address && ip.includes(':') === address.includes(':'));
  const yields = (address: string) =>
    isFormer(claim) && pool && (hasOther(address) || !isRequestable(pool, parseAddress(address)));
  const wanted = requested.filter((address) => !yields(address));
  const isOpen = !isReadable || wanted.some((address) => !ips.includes(address));
  const isPending = isOpen && conditionOf(claim, IPS_ALLOCATED)?.status === 'True';
  if (isPending === (honoured !== undefined)) return;
  const says = honoured?.message ?? 'nothing';
  throw new Violation(`${objectKey(claim)} asks for ${text}, has ${ips.join()}, says ${says}`);
}
