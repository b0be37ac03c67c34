import type { ShownFamilyCounts } from '../../api/address-pool.js';
import type { LeaseState } from '../../api/address-lease.js';
import type { AddressState, CountField } from '../../addressing/address-states.js';
import type { Finding } from '../doctor/finding.js';
import type { TraceNode } from '../trace/tree.js';

/** What the server sends to the page. Text of objects has no hidden characters, and is bounded. */

/** One kind of objects that the server watches with the rights of the user. */
export interface PartStatus {
  /** `addressleases.ipam.holdfast.dev` */
  readonly resource: string;
  /**
   * - `live`: complete, and followed by a watch
   * - `interrupted`: the watch does not work; what is shown may be old
   * - `refused`: the user may not list the kind
   * - `absent`: the API server does not serve the kind
   */
  readonly state: 'loading' | 'live' | 'interrupted' | 'refused' | 'absent';
  /** Present if the user may list the kind only there. */
  readonly namespace?: string;
  /** Why it is not live. */
  readonly message?: string;
  /** It was listed once: an interruption makes what is shown old, not incomplete. */
  readonly isListed?: true;
  /** When the interruption began, in milliseconds since the epoch. */
  readonly since?: number;
}

/** Whether all objects of a kind are shown: an empty list then means that there are none. Events are those of one namespace. */
export function isWhole({ resource, isListed, namespace }: PartStatus): boolean {
  return isListed === true && (namespace === undefined || resource === 'events');
}

/** Returns what an empty list of a kind says. */
export function emptyText(parts: readonly PartStatus[], plural: string, none: string): string {
  const part = parts.find(({ resource }) => resource.split('.')[0] === plural);
  return part !== undefined && isWhole(part) ? none : `None is shown, but not all ${plural} could be read.`;
}

/** A list that is cut to a length that a browser can show. */
export interface BoundedList<Row> {
  readonly rows: readonly Row[];
  readonly total: number;
}

export interface ConditionRow {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  /** RFC 3339. */
  readonly since: string;
}

/** Addresses of one family by state, as the pool's status counts them. */
export type ShownPoolCounts = Readonly<Record<CountField | 'capacity', number>> & Pick<ShownFamilyCounts, 'family'>;

export interface PoolRow {
  readonly name: string;
  readonly network: string;
  readonly cidrs: readonly string[];
  /** By family; empty until ipam has counted. */
  readonly counts: readonly ShownPoolCounts[];
  /** Absent until ipam has counted. */
  readonly heldByStopped?: number;
  readonly isReady: boolean;
  /** Conditions that say that something is wrong. */
  readonly problems: readonly ConditionRow[];
  /** The share of the fullest family that nobody else can get, at the times of the view; null: unknown. */
  readonly used: readonly (number | null)[];
}

export interface PoolsView {
  readonly view: 'pools';
  /** When the use of the pools was recorded, in milliseconds since the epoch. The first is the start of the server. */
  readonly times: readonly number[];
  readonly pools: BoundedList<PoolRow>;
}

export interface LeaseRow {
  readonly address: string;
  readonly pool: string;
  readonly state: LeaseState;
  readonly owner?: { readonly kind: string; readonly namespace: string; readonly name: string; readonly vm?: string };
  readonly node?: string;
  readonly mac?: string;
  /** The MAC address that has a quarantined address. */
  readonly takenBy?: string;
  /** RFC 3339. */
  readonly releasedAt?: string;
}

/** Some neighbouring addresses on the map. */
export interface MapCell {
  readonly first: string;
  readonly last: string;
  /** Numbers of addresses as decimal text: IPv6 has more than a number can hold. */
  readonly counts: Readonly<Partial<Record<AddressState, string>>>;
  /** Of a cell of one address. */
  readonly lease?: LeaseRow;
}

/** A part of a subnet: 2^bits addresses in up to 256 cells. */
export interface MapWindow {
  readonly first: string;
  readonly last: string;
  readonly bits: number;
  readonly cells: readonly MapCell[];
  /** One character for each address in order, the letter of its state in {@link ADDRESS_STATES}; absent if there are more than 65,536. */
  readonly states?: string;
}

export interface PoolView {
  readonly view: 'pool';
  readonly pool: PoolRow | undefined;
  readonly conditions: readonly ConditionRow[];
  readonly times: readonly number[];
  /** The subnets, with the largest window of each. */
  readonly subnets: readonly { readonly cidr: string; readonly top: string; readonly bits: number }[];
  readonly window?: MapWindow;
  readonly waiting: BoundedList<ClaimRow>;
}

export interface ClaimRow {
  readonly namespace: string;
  readonly name: string;
  readonly vm: string;
  readonly network: string;
  readonly addresses: readonly string[];
  readonly mac: string;
  readonly state: string;
  /** Why it waits, or what is wrong. */
  readonly problems: readonly ConditionRow[];
}

export interface VmRow {
  readonly namespace: string;
  readonly name: string;
  readonly status: string;
  readonly node: string;
  readonly addresses: readonly string[];
  readonly problem: string;
}

export interface VmsView {
  readonly view: 'vms';
  readonly vms: BoundedList<VmRow>;
}

export interface EventRow {
  readonly type: string;
  readonly reason: string;
  readonly object: string;
  readonly message: string;
  readonly count: number;
  /** RFC 3339. */
  readonly last: string;
}

export interface VmView {
  readonly view: 'vm';
  readonly vm: VmRow | undefined;
  /** Absent until it is read, and if there is no such VM. */
  readonly story?: TraceNode;
  /** Why the story could not be read again. */
  readonly failure?: string;
  readonly leases: readonly LeaseRow[];
  readonly events: BoundedList<EventRow>;
}

export type FindingRow = Pick<Finding, 'severity' | 'object' | 'problem' | 'remedy'>;

export interface WaitingView {
  readonly view: 'waiting';
  /** What `kubectl holdfast doctor` finds without trying anything; absent until it is read. */
  readonly findings?: BoundedList<FindingRow>;
  /** Why it could not be read again. */
  readonly failure?: string;
  readonly pools: BoundedList<PoolRow>;
}

/** An object that a search has found. `href` is a route of the page. */
export interface SearchHit {
  readonly kind: string;
  readonly text: string;
  readonly detail: string;
  readonly href: string;
}

export interface SearchView {
  readonly view: 'search';
  readonly hits: BoundedList<SearchHit>;
}

export type AnyView = PoolsView | PoolView | VmsView | VmView | WaitingView | SearchView;

/** One message of the stream. The first is a snapshot; each patch (RFC 6902) applies to the message before it. */
export type ServerView = AnyView & {
  readonly parts: readonly PartStatus[];
  /** Errors that concern the whole installation, for each view. */
  readonly alerts: readonly FindingRow[];
};

/** The parameters of a view, from the query of the stream. */
export interface ViewRequest {
  readonly view: string;
  readonly namespace: string;
  readonly name: string;
  /** Words that rows must contain. */
  readonly query: string;
  /** The column by which rows are sorted, after `-` in descending order. */
  readonly sort: string;
  /** An address within the window of the map. */
  readonly at: string;
  /** The size of the window: 2^bits addresses. */
  readonly bits: number | undefined;
}
