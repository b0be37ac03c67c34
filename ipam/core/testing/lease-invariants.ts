import type { AddressLease } from '../../../api/address-lease.js';
import { type LeaseRecord, type LeaseTimes, readLease, stateOf } from '../lease.js';

/** What the judge remembers of an address: it outlives the lease. */
interface PastRelease {
  /** When the API server took the release, in milliseconds since the epoch. */
  readonly at: number;
  readonly workload: string | undefined;
  readonly mac: string | undefined;
  readonly kind: string | undefined;
  readonly namespace: string | undefined;
}

export interface LeaseWorldState {
  now(): number;
  /** Of a claim's UID. */
  isAlive(uid: string): boolean;
  /** Whether an administrator's write is being served. */
  byAdmin(): boolean;
  /** Whether whoever decided on the write saw nothing else that is free. */
  isPressed(): boolean;
}

/** All that a lease of the static table has without an owner. */
const RESERVATION_KEYS = ['address', 'addressSpace', 'mac', 'metadata', 'pool', 'reserved'].join();

/** Checks each write that the API server makes against the invariants, by rules of its own. */
export class LeaseInvariants {
  readonly #world: LeaseWorldState;
  readonly #times: LeaseTimes;
  /** A release may be as much older than the write that the server took. */
  readonly #slackMs: number;
  readonly #departures = new Map<string, PastRelease>();

  constructor(world: LeaseWorldState, times: LeaseTimes, slackMs: number) {
    this.#world = world;
    this.#times = times;
    this.#slackMs = slackMs;
  }

  /** @throws {Error} where the write breaks an invariant */
  check(before: AddressLease | undefined, after: AddressLease | undefined): void {
    const was = before === undefined ? undefined : readLease(before);
    const is = after === undefined ? undefined : readLease(after);
    if (was !== undefined && is !== undefined) {
      requireHolds(was.pool === is.pool, 'the pool changed', was);
      this.#judgeTable(was, is);
    }
    switch (was === undefined ? 'absent' : stateOf(was)) {
      case 'held':
        this.#judgeEnd(was!, is);
        break;
      case 'reserved':
        this.#judgeReserved(was!, is);
        break;
      default:
        this.#judgeFree(was, is);
    }
  }

  #judgeTable(was: LeaseRecord, is: LeaseRecord): void {
    const wasOfTable = was.reserved === true || stateOf(was) === 'reserved';
    if (!wasOfTable)
      requireHolds(is.reserved === undefined && stateOf(is) !== 'reserved', 'it came into the static table', is);
    else {
      requireHolds(is.mac === was.mac, 'an address of the static table is for another MAC address', is);
      requireHolds(is.reserved === true, 'an address of the static table was used up', is);
    }
  }

  #judgeEnd(was: LeaseRecord, is: LeaseRecord | undefined): void {
    requireHolds(is !== undefined, 'a held lease was deleted', was);
    requireHolds(is?.owner?.uid === was.owner?.uid, 'a held lease got another owner', was);
    if (is === undefined || stateOf(is) === 'held') return;
    requireHolds(stateOf(is) === 'released', 'a held lease lost its owner', was);
    requireHolds(!this.#world.isAlive(was.owner?.uid ?? ''), 'the lease of a living owner was released', was);
    const { workloadUID: workload, kind, namespace } = was.owner ?? {};
    const departure = { at: this.#world.now(), workload, mac: was.mac, kind, namespace };
    this.#departures.set(was.metadata.name, departure);
  }

  #judgeReserved(was: LeaseRecord, is: LeaseRecord | undefined): void {
    if (is === undefined)
      requireHolds(this.#world.byAdmin(), 'a reserved lease was deleted by others than an admin', was);
    else if (is.owner !== undefined) {
      requireHolds(
        was.mac !== undefined && is.mac === was.mac,
        'a reserved lease was taken by another MAC address',
        was,
      );
    }
  }

  #judgeFree(was: LeaseRecord | undefined, is: LeaseRecord | undefined): void {
    if (is !== undefined && stateOf(is) === 'held') this.#judgeTake(is);
    else if (was !== undefined) this.#judgeExpiry(was, is);
  }

  #judgeTake(is: LeaseRecord): void {
    const left = this.#departures.get(is.metadata.name);
    if (left === undefined) return;
    const isBack = left.kind === 'Pod' && left.mac !== undefined && left.mac === is.mac;
    if (isBack && left.namespace === is.owner?.namespace) return;
    if (left.workload !== undefined && is.owner?.workloadUID === left.workload) return;
    requireHolds(this.#hasPassed(left, this.#times.cooldownMs), 'an address that cools down got another owner', is);
    requireHolds(this.#isFree(left, is), 'an address that waits for its MAC address got another one', is);
  }

  #isFree(left: PastRelease, is: LeaseRecord): boolean {
    const isItsMac = left.mac === undefined || left.mac === is.mac;
    return isItsMac || this.#world.isPressed() || this.#hasPassed(left, this.#times.stickyMs);
  }

  #judgeExpiry(was: LeaseRecord, is: LeaseRecord | undefined): void {
    const left = this.#departures.get(was.metadata.name);
    requireHolds(is === undefined || stateOf(is) === 'reserved', 'a released lease is neither taken nor gone', was);
    if (is === undefined) requireHolds(was.reserved === undefined, 'an address of the static table was forgotten', was);
    else requireHolds(Object.keys(is).sort().join() === RESERVATION_KEYS, 'something of the last owner is left', is);
    if (left === undefined) return;
    requireHolds(this.#hasPassed(left, this.#times.cooldownMs), 'a lease expired while it cooled down', was);
    if (is !== undefined) return;
    const isOver = left.mac === undefined || this.#hasPassed(left, this.#times.stickyMs);
    requireHolds(isOver, 'a lease expired before its MAC address could come', was);
  }

  #hasPassed({ at }: PastRelease, ms: number): boolean {
    return this.#world.now() - at + this.#slackMs >= ms;
  }
}

function requireHolds(holds: boolean, complaint: string, lease: LeaseRecord): void {
  if (!holds) throw new Error(`${complaint}: ${lease.metadata.name} of ${lease.owner?.name ?? 'nobody'}`);
}
