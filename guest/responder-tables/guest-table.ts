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
