import type { EventSubject } from '../../kube/events.js';
import type { GuestOptionSet, TableEntry } from './protocol.js';

/** What reports about a guest say. */
export interface TableGuest {
  /** `namespace/name`. */
  readonly claim: string;
  /** The VM, or a claim without one. */
  readonly subject: EventSubject;
}

/** Everything that a responder answers from. */
export interface GuestTable {
  /** By MAC address. */
  readonly entries: ReadonlyMap<string, TableEntry>;
  /** By id. */
  readonly options: ReadonlyMap<string, GuestOptionSet>;
  /** The guest of each address, for reports about the address. */
  readonly guests: ReadonlyMap<string, TableGuest>;
  /** How many guests have no entry because of the limit. */
  readonly leftOut: number;
}

/** What responders know of their pool. */
export interface TablePool {
  readonly name: string;
  readonly uid: string;
  readonly network: string;
  /** Guests need router advertisements for their IPv6 default route. */
  readonly hasIpv6Gateway: boolean;
}

/** A lease whose address is to be probed. The answer counts for this version of it only. */
export interface RequestedProbe {
  readonly metadata: { readonly name: string; readonly uid: string; readonly resourceVersion: string };
  readonly address: string;
  /** The MAC addresses of the guest for which the address is meant. */
  readonly expected: readonly string[];
}
