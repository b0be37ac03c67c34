import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { shortHash } from '../../api/names.js';
import type { ConfigMap } from '../../kube/resources.js';
import { fairOrder } from './fair-order.js';
import type { GuestOptionSet, HelperConfig, TableEntry } from './protocol.js';
import type { GuestTable, TableGuest } from './guest-table.js';

/**
 * The object by which `guest` gives a table to the responders of a pool. Only `guest` writes it, which a policy enforces; both run the same image, and
 * a table of another format is not read.
 */

/** Everything that the responders of a pool need. */
export interface PublishedTable {
  readonly pool: TablePool;
  /** By the name of the pod. */
  readonly configs: Readonly<Record<string, HelperConfig>>;
  readonly table: GuestTable;
  /** The addresses for which ipam requests a probe. */
  readonly probes: readonly RequestedProbe[];
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

/** Says until when a version of a table shows everything: until `ageMs` before it was prepared, which was after a beat of the index. */
export interface TableStatement {
  readonly version: string;
  /** Undefined: no beat is known. */
  readonly after: IndexBeat | undefined;
  readonly ageMs: number;
}

/** A number that each write of an index increases. */
export interface IndexBeat {
  /** The UID of the index: the beats of another one begin anew. */
  readonly index: string;
  readonly beat: number;
}

const FORMAT = 1;
/** Bytes of a compressed table. A ConfigMap holds 1 MiB in all. */
const MAX_BYTES = 1_040_000;
/** Bytes of a table that is not compressed: 16,384 guests with the longest names and options. */
const MAX_TEXT_BYTES = 64 * 2 ** 20;
const TABLE = 'table';

/** `namespace/name` of the claim, and the subject of events as a list, which is shorter than an object: thousands have to fit. */
type Row = readonly [
  entry: TableEntry,
  claim: string,
  subject: readonly [apiVersion: string, kind: string, namespace: string, name: string, uid: string],
];

interface Content {
  readonly format: typeof FORMAT;
  readonly pool: TablePool;
  readonly configs: PublishedTable['configs'];
  readonly options: readonly GuestOptionSet[];
  readonly rows: readonly Row[];
  readonly leftOut: number;
  readonly probes: readonly RequestedProbe[];
}

/** A table in the form in which it is written. */
export interface EncodedTable {
  readonly version: string;
  /** In base64. */
  readonly text: string;
}

const [compress, decompress] = [promisify(gzip), promisify(gunzip)];

/** The part of the rows by which a table may be shorter than necessary. Each half of it costs one more attempt. */
const ATTEMPT_PART = 1 / 64;

/** Leaves out the youngest claims of namespaces with the most text if not all rows fit into the object. */
export async function encodeTable(published: PublishedTable, maxBytes = MAX_BYTES): Promise<EncodedTable> {
  const rows = rowsOf(published.table);
  const all = await encodeRows(published, rows, rows.length, maxBytes);
  if (all !== undefined) return all;
  const fair = fairOrder(rows, namespaceOf, (row) => JSON.stringify(row).length);
  let found = await encodeRows(published, fair, 0, maxBytes);
  if (found === undefined)
    throw new TypeError(`the table of AddressPool ${published.pool.name} does not fit into a ConfigMap`);
  for (let [fitting, tooMany] = [0, fair.length]; tooMany - fitting > Math.max(1, fair.length * ATTEMPT_PART);) {
    const kept = Math.floor((fitting + tooMany) / 2);
    const encoded = await encodeRows(published, fair, kept, maxBytes);
    found = encoded ?? found;
    if (encoded === undefined) tooMany = kept;
    else fitting = kept;
  }
  return found;
}

/** Undefined if it does not fit. */
async function encodeRows(
  published: PublishedTable,
  rows: readonly Row[],
  kept: number,
  maxBytes: number,
): Promise<EncodedTable | undefined> {
  const text = JSON.stringify(contentOf(published, rows, kept));
  const bytes = await compress(text);
  return bytes.length > maxBytes ? undefined : { version: shortHash(text, 16), text: bytes.toString('base64') };
}

function contentOf({ pool, configs, table, probes }: PublishedTable, rows: readonly Row[], kept: number): Content {
  const leftOut = table.leftOut + rows.length - kept;
  return {
    format: FORMAT,
    pool,
    configs,
    options: [...table.options.values()],
    rows: rows.slice(0, kept),
    leftOut,
    probes,
  };
}

/** @throws {TypeError} if it is no table of this format */
export async function decodeTable({ metadata, binaryData }: ConfigMap): Promise<PublishedTable> {
  const bytes = Buffer.from(binaryData?.[TABLE] ?? '', 'base64');
  const text = (await decompress(bytes, { maxOutputLength: MAX_TEXT_BYTES })).toString();
  const content = JSON.parse(text) as Content;
  if ((content.format as number) !== FORMAT)
    throw new TypeError(
      `ConfigMap ${metadata.name} has a table of format ${String(content.format)}, not ${FORMAT}: run guest and responders with one image`,
    );
  const { pool, configs, options, rows, leftOut, probes } = content;
  const entries = rows.map(([entry]) => [entry.mac, entry] as const);
  const guests = rows.flatMap((row) => addressesOf(row[0]).map((address) => [address, guestOf(row)] as const));
  const table = {
    entries: new Map(entries),
    options: new Map(options.map((set) => [set.id, set])),
    guests: new Map(guests),
    leftOut,
  };
  return { pool, configs, table, probes };
}

function rowsOf({ entries, guests }: GuestTable): Row[] {
  return [...entries.values()].flatMap((entry): Row[] => {
    const guest = guests.get(addressesOf(entry)[0] ?? '');
    if (guest === undefined) return [];
    const { apiVersion, kind, metadata } = guest.subject;
    return [[entry, guest.claim, [apiVersion, kind, metadata.namespace ?? '', metadata.name, metadata.uid ?? '']]];
  });
}

function namespaceOf([, claim]: Row): string {
  return claim.split('/', 1)[0] ?? '';
}

function guestOf([, claim, [apiVersion, kind, namespace, name, uid]]: Row): TableGuest {
  return { claim, subject: { apiVersion, kind, metadata: { namespace, name, uid } } };
}

function addressesOf({ ipv4, ipv6 }: TableEntry): string[] {
  return [ipv4?.address, ipv6?.address].filter((address) => address !== undefined);
}

/** The data of the ConfigMap with a table. */
export function tableData({ version, text }: EncodedTable, { after, ageMs }: Omit<TableStatement, 'version'>) {
  return {
    data: { version, ageMs: String(ageMs), ...(after && { after: `${after.index}/${after.beat}` }) },
    binaryData: { [TABLE]: text },
  };
}

export function versionOf({ data }: Pick<ConfigMap, 'data'>): string {
  return data?.version ?? '';
}

/** What an object says about its table. */
export function statementOf(object: Pick<ConfigMap, 'data'>): TableStatement {
  const { after = '', ageMs = '' } = object.data ?? {};
  const [index = '', beat = ''] = after.split('/');
  return {
    version: versionOf(object),
    after: beat === '' ? undefined : { index, beat: Number(beat) },
    ageMs: Number(ageMs),
  };
}
