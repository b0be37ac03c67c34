import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { RESPONDER_INDEX, shortHash } from '../../api/names.js';
import type { ConfigMap } from '../../kube/resources.js';
import { fairOrder } from '../fair-order.js';
import type { HelperConfig } from './protocol.js';
import type { GuestTable, RequestedProbe, TablePool } from './guest-table.js';
import { TABLE_FORMAT, type TableHeader, entryAddresses, entryLine, optionsLine } from './table-text.js';

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

/** Bytes of a compressed table. A ConfigMap holds 1 MiB in all. */
const MAX_BYTES = 1_040_000;
/** Bytes of the text, which both containers of a responder must be able to hold: 16,384 guests with the names and options that most have, twice. */
export const MAX_TEXT_BYTES = 12 * 2 ** 20;
const TABLE = 'table';

/** A table in the form in which it is written. */
export interface EncodedTable {
  readonly version: string;
  /** In base64. */
  readonly text: string;
}

const compress = promisify(gzip);

/** What a table may have. */
interface TableLimits {
  readonly bytes: number;
  readonly textBytes: number;
}

/** The part of the lines by which a table may be shorter than necessary. Each half of it costs one more attempt. */
const ATTEMPT_PART = 1 / 64;

interface Line {
  readonly namespace: string;
  readonly text: string;
  /** The line of its options, which others may have too. */
  readonly options: string;
  /** Of both, but for options that an earlier line of the namespace has. */
  readonly bytes: number;
}

/** Leaves out the youngest claims of namespaces with the most text if not all lines fit into the object. */
export async function encodeTable(published: PublishedTable, limits?: Partial<TableLimits>): Promise<EncodedTable>;
/**
 * The same, unless the table is stored as a whole. Most are: compressing one to find out would take longer than to build it.
 * @param stored the version that is stored
 */
export async function encodeTable(
  published: PublishedTable,
  limits: Partial<TableLimits>,
  stored: string,
): Promise<EncodedTable | undefined>;
export async function encodeTable(
  published: PublishedTable,
  { bytes = MAX_BYTES, textBytes = MAX_TEXT_BYTES }: Partial<TableLimits> = {},
  stored?: string,
): Promise<EncodedTable | undefined> {
  const limits = { bytes, textBytes };
  const lines = linesOf(published.table);
  const text = textOf(published, lines);
  const version = tableVersion(text);
  if (version === stored) return undefined;
  const all = await encodeText(text, limits, version);
  if (all !== undefined) return all;
  const fair = fairOrder(
    lines,
    ({ namespace }) => namespace,
    ({ bytes: own }) => own,
  );
  const encodeFirst = (entries: number) => encodeText(textOf(published, fair, entries), limits);
  let found = await encodeFirst(0);
  if (found === undefined)
    throw new TypeError(`the table of AddressPool ${published.pool.name} does not fit into a ConfigMap`);
  for (let [fitting, tooMany] = [0, fair.length]; tooMany - fitting > Math.max(1, fair.length * ATTEMPT_PART);) {
    const kept = Math.floor((fitting + tooMany) / 2);
    const encoded = await encodeFirst(kept);
    found = encoded ?? found;
    if (encoded === undefined) tooMany = kept;
    else fitting = kept;
  }
  return found;
}

/** Undefined if it does not fit. */
async function encodeText(
  text: string,
  { bytes, textBytes }: TableLimits,
  version = tableVersion(text),
): Promise<EncodedTable | undefined> {
  if (Buffer.byteLength(text) > textBytes) return undefined;
  const compressed = await compress(text);
  if (compressed.length > bytes) return undefined;
  return { version, text: compressed.toString('base64') };
}

function tableVersion(text: string): string {
  return shortHash(text, 16);
}

/** @param entries how many of the lines it has; default: all */
function textOf(
  { pool, configs, table, probes }: PublishedTable,
  lines: readonly Line[],
  entries = lines.length,
): string {
  const kept = lines.slice(0, entries);
  const sets = [...new Set(kept.map(({ options }) => options))];
  const leftOut = table.leftOut + lines.length - entries;
  const optionSets = sets.length;
  const header: TableHeader = { format: TABLE_FORMAT, pool, configs, probes, optionSets, entries, leftOut };
  // all of them begin with the MAC address
  const guests = kept.map(({ text: line }) => line).sort();
  return [JSON.stringify(header), ...sets, ...guests, ''].join('\n');
}

function linesOf({ entries, options, guests }: GuestTable): Line[] {
  const sets = new Map([...options].map(([id, set]) => [id, optionsLine(set)]));
  const counted = new Set<string>();
  return [...entries.values()].flatMap((entry): Line[] => {
    const guest = guests.get(entryAddresses(entry)[0] ?? '');
    const set = sets.get(entry.options);
    if (guest === undefined || set === undefined) return [];
    const namespace = guest.claim.split('/', 1)[0] ?? '';
    const text = entryLine(entry, guest);
    const key = `${namespace}/${entry.options}`;
    const bytes = Buffer.byteLength(text) + (counted.has(key) ? 0 : Buffer.byteLength(set));
    counted.add(key);
    return [{ namespace, text, options: set, bytes }];
  });
}

/** The compressed table of an object; empty if it has none. */
export function tableBytesOf({ binaryData }: ConfigMap): Buffer {
  return Buffer.from(binaryData?.[TABLE] ?? '', 'base64');
}

/** The data of the ConfigMap with a table. @param index the name of the index that has it */
export function tableData(
  { version, text }: EncodedTable,
  { after, ageMs }: Omit<TableStatement, 'version'>,
  index: string,
) {
  return {
    data: { version, index, ageMs: String(ageMs), ...(after && { after: `${after.index}/${after.beat}` }) },
    binaryData: { [TABLE]: text },
  };
}

export function versionOf({ data }: Pick<ConfigMap, 'data'>): string {
  return data?.version ?? '';
}

/** The name of the index that has the table. An earlier release had one for all tables. */
export function indexNameOf({ data }: Pick<ConfigMap, 'data'>): string {
  return data?.index ?? RESPONDER_INDEX;
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
