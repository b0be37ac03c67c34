import type { AddressLease } from '../../api/address-lease.js';
import { type LeaseRecord, type LeaseTimes, readLease, stateOf } from '../lease/lease.js';

/** The last release of an address, which is remembered after the lease is gone. */
interface PastRelease {
  /** When the API server accepted the release, in milliseconds since the epoch. */
  readonly at: number;
  readonly workload: string | undefined;
  readonly mac: string | undefined;
  readonly kind: string | undefined;
  readonly namespace: string | undefined;
}

export interface LeaseWorldState {
  now(): number;
  /** True if the owner with this UID exists. */
  isAlive(uid: string): boolean;
  /** True while the write of an administrator is processed. */
  byAdmin(): boolean;
  /** True if the process that decided on the write saw no free address. */
  isExhausted(): boolean;
}

/** All keys of a reservation without an owner. */
const RESERVATION_KEYS = ['address', 'addressSpace', 'mac', 'metadata', 'pool', 'reserved'].join();

/** Checks each stored write against the invariants, by rules of its own. */
export class LeaseInvariants {
  readonly #world: LeaseWorldState;
  readonly #times: LeaseTimes;
  /** How much older than its arrival at the server a write may be. */
  readonly #slackMs: number;
  readonly #releases = new Map<string, PastRelease>();
  /** When the API server accepted the quarantine of an address. */
  readonly #quarantines = new Map<string, number>();
  readonly #quarantineMs: number;

  constructor(world: LeaseWorldState, times: LeaseTimes & { quarantineMs: number }, slackMs: number) {
    this.#world = world;
    this.#times = times;
    this.#quarantineMs = times.quarantineMs;
    this.#slackMs = slackMs;
  }

  /** @throws {Error} if the write breaks an invariant */
  check(before: AddressLease | undefined, after: AddressLease | undefined): void {
    const was = before === undefined ? undefined : readLease(before);
    const is = after === undefined ? undefined : readLease(after);
    if (was !== undefined && is !== undefined) {
      requireHolds(was.pool === is.pool, 'the pool changed', was);
      this.#checkReservation(was, is);
    }
    switch (was === undefined ? 'absent' : stateOf(was)) {
      case 'held':
        this.#checkHeld(was!, is);
        break;
      case 'reserved':
        this.#checkReserved(was!, is);
        break;
      case 'quarantined':
        this.#checkQuarantined(was!, is);
        break;
      default:
        this.#checkFree(was, is);
    }
  }

  #checkReservation(was: LeaseRecord, is: LeaseRecord): void {
    const wasReservation = was.reserved === true || stateOf(was) === 'reserved';
    if (!wasReservation)
      requireHolds(is.reserved === undefined && stateOf(is) !== 'reserved', 'a lease became a reservation', is);
    else {
      requireHolds(is.mac === was.mac, 'a reservation changed its MAC address', is);
      requireHolds(is.reserved === true, 'a reservation was lost', is);
    }
  }

  #checkHeld(was: LeaseRecord, is: LeaseRecord | undefined): void {
    requireHolds(is !== undefined, 'a held lease was deleted', was);
    if (is?.quarantine !== undefined) {
      this.#checkQuarantine(was, is);
      return;
    }
    requireHolds(is?.owner?.uid === was.owner?.uid, 'a held lease got another owner', was);
    if (is === undefined || stateOf(is) === 'held') return;
    requireHolds(stateOf(is) === 'released', 'a held lease lost its owner', was);
    requireHolds(!this.#world.isAlive(was.owner?.uid ?? ''), 'the lease of a living owner was released', was);
    this.#checkRelease(was, is);
  }

  #checkRelease(was: LeaseRecord, is: LeaseRecord): void {
    const isTaken = typeof was.probe === 'object' && was.reserved === undefined;
    const mac = isTaken ? undefined : was.mac;
    requireHolds(is.mac === mac, 'a released lease has a MAC address although its address is taken, or lost it', is);
    const { workloadUID: workload, kind, namespace } = was.owner ?? {};
    this.#releases.set(was.metadata.name, { at: this.#world.now(), workload, mac, kind, namespace });
  }

  #checkQuarantine(was: LeaseRecord, is: LeaseRecord): void {
    const isTaken = typeof was.probe === 'object' && was.probe.taken === is.quarantine?.mac;
    requireHolds(isTaken, 'an address was quarantined that no other host had', was);
    requireHolds(was.reserved === undefined, 'a reservation was quarantined', was);
    const keys = ['address', 'addressSpace', 'metadata', 'pool', 'quarantine'].join();
    requireHolds(Object.keys(is).sort().join() === keys, 'a field of the last owner is left', is);
    this.#quarantines.set(was.metadata.name, this.#world.now());
    // nobody had it since, and its earlier workload gets another address
    this.#releases.delete(was.metadata.name);
  }

  #checkQuarantined(was: LeaseRecord, is: LeaseRecord | undefined): void {
    if (is !== undefined) throw new Error(`a quarantined lease was changed: ${was.metadata.name}`);
    const since = this.#quarantines.get(was.metadata.name) ?? Infinity;
    const isOver = this.#world.now() - since + this.#slackMs >= this.#quarantineMs;
    requireHolds(isOver, 'a quarantine ended early', was);
  }

  #checkReserved(was: LeaseRecord, is: LeaseRecord | undefined): void {
    if (is === undefined)
      requireHolds(this.#world.byAdmin(), 'a reservation was deleted, but not by an administrator', was);
    else if (is.owner !== undefined) {
      const hasMac = was.mac !== undefined && is.mac === was.mac;
      requireHolds(hasMac, 'a reservation was allocated for another MAC address', was);
    }
  }

  #checkFree(was: LeaseRecord | undefined, is: LeaseRecord | undefined): void {
    if (is !== undefined && stateOf(is) === 'held') this.#checkAllocation(is);
    else if (was !== undefined) this.#checkExpiry(was, is);
  }

  #checkAllocation(is: LeaseRecord): void {
    requireHolds(is.probe === undefined || is.probe === 'requested', 'the probe of an earlier owner counts', is);
    const left = this.#releases.get(is.metadata.name);
    if (left === undefined) return;
    const isBack = left.kind === 'Pod' && left.mac !== undefined && left.mac === is.mac;
    if (isBack && left.namespace === is.owner?.namespace) return;
    if (left.workload !== undefined && is.owner?.workloadUID === left.workload) return;
    requireHolds(this.#hasPassed(left, this.#times.cooldownMs), 'a cooling address was reallocated', is);
    requireHolds(this.#isFree(left, is), 'a sticky address was allocated for another MAC address', is);
  }

  #isFree(left: PastRelease, is: LeaseRecord): boolean {
    const isItsMac = left.mac === undefined || left.mac === is.mac;
    return isItsMac || this.#world.isExhausted() || this.#hasPassed(left, this.#times.stickyMs);
  }

  #checkExpiry(was: LeaseRecord, is: LeaseRecord | undefined): void {
    const left = this.#releases.get(was.metadata.name);
    const hasExpired = is === undefined || stateOf(is) === 'reserved';
    requireHolds(hasExpired, 'a released lease was neither reallocated nor deleted', was);
    if (is === undefined) requireHolds(was.reserved === undefined, 'a reservation was deleted', was);
    else requireHolds(Object.keys(is).sort().join() === RESERVATION_KEYS, 'a field of the last owner is left', is);
    if (left === undefined) return;
    requireHolds(this.#hasPassed(left, this.#times.cooldownMs), 'a lease expired during its cool-down', was);
    if (is !== undefined) return;
    const isOver = left.mac === undefined || this.#hasPassed(left, this.#times.stickyMs);
    requireHolds(isOver, 'a lease expired during its sticky time', was);
  }

  #hasPassed({ at }: PastRelease, ms: number): boolean {
    return this.#world.now() - at + this.#slackMs >= ms;
  }
}

function requireHolds(holds: boolean, complaint: string, lease: LeaseRecord): void {
  if (!holds) throw new Error(`${complaint}: ${lease.metadata.name} of ${lease.owner?.name ?? 'nobody'}`);
}
