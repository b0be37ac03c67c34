import type { GuestOptionSet, HelperConfig, TableEntry } from './protocol.js';
import type { RequestedProbe, TableGuest, TablePool } from './guest-table.js';

/**
 * The text of a published table: a header, a line for each set of options, and a line for each guest, ordered by MAC address. Sets and entries are in
 * the form in which holdfast-packets gets them. So a responder reads and compares tables line by line, and never has a whole one in memory.
 */

export const TABLE_FORMAT = 2;

/** The first line. */
export interface TableHeader {
  readonly format: typeof TABLE_FORMAT;
  readonly pool: TablePool;
  readonly configs: Readonly<Record<string, HelperConfig>>;
  readonly probes: readonly RequestedProbe[];
  /** How many lines of each kind follow. */
  readonly optionSets: number;
  readonly entries: number;
  readonly leftOut: number;
}

/** Ends the entry of a line. JSON has it as `\t` in texts. */
const SEPARATOR = '\t';
const MAC_LENGTH = 17;
const MAC_BEGIN = '{"mac":"';
const ID_BEGIN = '{"id":"';

/** `namespace/name` of the claim, and the subject of events. */
type ReportedGuest = readonly [
  claim: string,
  apiVersion: string,
  kind: string,
  namespace: string,
  name: string,
  uid: string,
];

export function entryLine({ mac, ...entry }: TableEntry, { claim, subject }: TableGuest): string {
  const { apiVersion, kind, metadata } = subject;
  const { namespace = '', name, uid = '' } = metadata;
  const reported: ReportedGuest = [claim, apiVersion, kind, namespace, name, uid];
  // the MAC address comes first
  return `${JSON.stringify({ mac, ...entry })}${SEPARATOR}${JSON.stringify(reported)}`;
}

export function optionsLine({ id, ...set }: GuestOptionSet): string {
  return JSON.stringify({ id, ...set });
}

/** What holdfast-packets gets. */
export function entryTextOf(line: string): string {
  return line.slice(0, line.indexOf(SEPARATOR));
}

export function entryOf(line: string): TableEntry {
  return JSON.parse(entryTextOf(line)) as TableEntry;
}

export function guestOf(line: string): TableGuest {
  const reported = JSON.parse(line.slice(line.indexOf(SEPARATOR) + 1)) as ReportedGuest;
  const [claim, apiVersion, kind, namespace, name, uid] = reported;
  return { claim, subject: { apiVersion, kind, metadata: { namespace, name, uid } } };
}

export function macOf(line: string): string {
  return line.slice(MAC_BEGIN.length, MAC_BEGIN.length + MAC_LENGTH);
}

export function optionsIdOf(line: string): string {
  return line.slice(ID_BEGIN.length, line.indexOf('"', ID_BEGIN.length));
}

export function entryAddresses({ ipv4, ipv6 }: TableEntry): string[] {
  return [ipv4?.address, ipv6?.address].filter((address) => address !== undefined);
}
