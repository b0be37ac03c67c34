import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
import { CLAIM_REQUESTED_ADDRESSES, IPS_ALLOCATED, REQUEST_HONOURED } from '../../api/names.js';
import { formatAddress, parseAddress } from '../../ipam/core/address.js';
import { addressesOf, compilePool } from '../../ipam/core/pool.js';
import type { Judge } from './api.js';
import { MAX_STALENESS_MS } from './process.js';
import type { World } from './world.js';

/** A promise that was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

/** Without prefix length. */
export function bare(ip: string): string {
  return ip.replace(/\/.*$/, '');
}

export function heldBy(world: World, uid: string | undefined): AddressLease[] {
  return world.list('addressleases').filter(({ spec }) => spec.releasedAt === undefined && spec.owner?.uid === uid);
}

/** What must never happen, judged at each write of the IPAM. */
export class Invariants implements Judge {
  /** UIDs of leases that a status has shown. */
  readonly #shown = new Set<string>();
  /** By pod: the addresses that it was given, and the UID of the claim. */
  readonly inUse = new Map<string, { claim: string; addresses: readonly string[] }>();
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  leaseChanges(before: AddressLease | undefined, after: AddressLease | undefined): void {
    if (before === undefined) return;
    const wasHeld = before.spec.releasedAt === undefined;
    if (wasHeld && (after === undefined || after.spec.releasedAt !== undefined)) this.#mayGo(before, after);
    if (after === undefined || after.spec.releasedAt !== undefined) return;
    if (wasHeld && after.spec.owner?.uid !== before.spec.owner?.uid) {
      throw new Violation(`${before.metadata.name} is taken from its owner`);
    }
    if (!wasHeld) this.#mayBeTaken(before, after);
  }

  statusChanges(before: IPAMClaim, after: IPAMClaim): void {
    const ips = (after.status?.ips ?? []).map(bare);
    const had = (before.status?.ips ?? []).map(bare);
    for (const lease of heldBy(this.#world, after.metadata.uid)) {
      if (ips.includes(lease.spec.address)) this.#shown.add(lease.metadata.uid ?? '');
    }
    const allocated = after.status?.conditions?.find(({ type }) => type === IPS_ALLOCATED);
    if (allocated === undefined) throw new Violation(`${objectKey(after)} has no ${IPS_ALLOCATED}`);
    if (ips.length > 0 === (allocated.status === 'True')) return;
    if (allocated.status === 'True') throw new Violation(`${objectKey(after)} is allocated without addresses`);
    if (!ips.every((ip) => had.includes(ip))) throw new Violation(`${objectKey(after)} is refused what it shows anew`);
  }

  #mayGo(lease: AddressLease, after: AddressLease | undefined): void {
    const { name, uid = '' } = lease.metadata;
    const claim = this.#world.claim(lease.spec.owner?.uid);
    if (after === undefined && this.#shown.has(uid)) throw new Violation(`${name} is deleted, and was shown`);
    if (claim === undefined) return;
    if ((claim.status?.ips ?? []).map(bare).includes(lease.spec.address)) {
      throw new Violation(`${name} goes, and its claim shows it`);
    }
    for (const { claim: user, addresses } of this.inUse.values()) {
      if (user === claim.metadata.uid && addresses.includes(lease.spec.address)) {
        throw new Violation(`${name} goes, and a pod has it`);
      }
    }
  }

  #mayBeTaken(before: AddressLease, after: AddressLease): void {
    const workload = after.spec.owner?.workloadUID;
    if (workload !== undefined && workload === before.spec.owner?.workloadUID) return;
    const since = this.#world.now - Date.parse(before.spec.releasedAt ?? '');
    if (since < 2 * MAX_STALENESS_MS)
      throw new Violation(`${before.metadata.name} is taken ${since} ms after its release`);
  }
}

/** At rest: every claim has its addresses or says why not, and there are no leases but theirs. */
export function checkRest(world: World, served: boolean): void {
  for (const claim of world.list('ipamclaims')) checkClaim(world, claim, served);
  for (const { metadata, spec } of world.list('addressleases')) {
    if (spec.releasedAt !== undefined) continue;
    if (world.claim(spec.owner?.uid) === undefined) throw new Violation(`${metadata.name} has no owner any more`);
  }
}

function checkClaim(world: World, claim: IPAMClaim, served: boolean): void {
  const { status, metadata } = claim;
  const key = objectKey(claim);
  const held = heldBy(world, metadata.uid).map(({ spec }) => spec.address);
  if (status === undefined) {
    if (metadata.deletionTimestamp === undefined) throw new Violation(`${key} has no status`);
    return;
  }
  const ips = status.ips.map(bare);
  const allocated = status.conditions?.find(({ type }) => type === IPS_ALLOCATED);
  if (allocated === undefined) {
    // it was restored like this and is going: it gets nothing new
    if (metadata.deletionTimestamp === undefined) throw new Violation(`${key} says nothing`);
    return;
  }
  const isUsed = world.list('pods').some((pod) => JSON.stringify(pod.metadata.annotations).includes(metadata.name));
  const surplus = held.filter((address) => !ips.includes(address));
  if (surplus.length > 0 && served && !isUsed && metadata.deletionTimestamp === undefined) {
    throw new Violation(`${key} has ${surplus.join()} and does not show it`);
  }
  if (allocated.status === 'True' && !ips.every((ip) => held.includes(ip))) {
    throw new Violation(`${key} shows ${ips.join()} and has ${held.join()}`);
  }
  if (allocated.status === 'False' && allocated.message === '') throw new Violation(`${key} does not say why`);
  checkRequest(claim, ips, allocated.status);
}

function checkRequest(claim: IPAMClaim, ips: readonly string[], allocated: string): void {
  const honoured = claim.status?.conditions?.find(({ type }) => type === REQUEST_HONOURED);
  if (claim.metadata.deletionTimestamp !== undefined) return;
  const text = claim.metadata.annotations?.[CLAIM_REQUESTED_ADDRESSES];
  const wanted: string[] = text?.startsWith('[') ? (JSON.parse(text) as string[]).map(bare) : [];
  const isPending = allocated === 'True' && (text === 'nonsense' || wanted.some((address) => !ips.includes(address)));
  if (isPending !== (honoured !== undefined)) {
    throw new Violation(
      `${objectKey(claim)} asks for ${text ?? 'nothing'}, has ${ips.join()}, says ${honoured?.message ?? 'nothing'}`,
    );
  }
}

/** Nobody waits for what is free. To be asked once nothing cools down. */
export function checkWaiting(world: World): void {
  const pool = world.get('addresspools', 'blue');
  const compiled = pool && compilePool(pool);
  if (compiled?.ok !== true) return;
  const leased = world.list('addressleases').map(({ spec }) => parseAddress(spec.address));
  const isFull = compiled.pool.families.some((family) => {
    const values = addressesOf(compiled.pool, family, 'open');
    return (
      BigInt(leased.filter((address) => address.family === family && values.has(address.value)).length) >= values.size
    );
  });
  for (const claim of world.list('ipamclaims')) {
    const allocated = claim.status?.conditions?.find(({ type }) => type === IPS_ALLOCATED);
    if (allocated?.status !== 'False' || claim.metadata.deletionTimestamp !== undefined) continue;
    if (allocated.reason === 'SubnetExhausted' && !isFull) throw new Violation(`${objectKey(claim)} waits in vain`);
    if (allocated.reason !== 'IPAddressConflict') continue;
    const text = allocated.message.split(' ')[0] ?? '';
    if (!leased.some((address) => formatAddress(address) === text)) {
      throw new Violation(`${objectKey(claim)} waits for ${text}, which is free`);
    }
  }
}
