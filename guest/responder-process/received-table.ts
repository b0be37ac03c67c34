import { createGunzip } from 'node:zlib';
import type { KubeObject } from '../../api/meta.js';
import { identityMetadataOf } from '../../cluster/metadata.js';
import type { ConfigMap } from '../../kube/resources.js';
import { MAX_TEXT_BYTES, tableBytesOf } from '../responder-tables/published-table.js';
import {
  TABLE_FORMAT,
  type TableHeader,
  entryAddresses,
  entryOf,
  guestOf,
  optionsIdOf,
} from '../responder-tables/table-text.js';
import { LineReader, type TableEntry } from '../responder-tables/protocol.js';
import type { TableGuest } from '../responder-tables/guest-table.js';

/** The ConfigMap of a table in the cache. */
export interface StoredTable extends KubeObject, Pick<ConfigMap, 'data'> {
  /** Compressed. */
  readonly bytes: Buffer;
}

export function storedTableOf(object: ConfigMap): StoredTable {
  const { metadata, data = {} } = object;
  return { metadata: identityMetadataOf(metadata), data, bytes: tableBytesOf(object) };
}

/** A guest in a table, with its entry. */
export interface FoundGuest extends TableGuest {
  readonly entry: TableEntry;
}

/** Of decompressed text at once. */
const CHUNK_BYTES = 64 * 1024;

/** A table as a responder keeps it: compressed. Each reader reads all of its lines. */
export class ReceivedTable {
  readonly header: TableHeader;
  /** The ids of its sets of options. */
  readonly optionIds: ReadonlySet<string>;
  readonly #bytes: Buffer;

  private constructor(header: TableHeader, optionIds: ReadonlySet<string>, bytes: Buffer) {
    this.header = header;
    this.optionIds = optionIds;
    this.#bytes = bytes;
  }

  /**
   * Reads all lines once, so that later readers find no error.
   * @throws {TypeError} if it is no table of this format
   */
  static async read({ metadata, bytes }: Pick<StoredTable, 'metadata' | 'bytes'>): Promise<ReceivedTable> {
    let header: TableHeader | undefined;
    const optionIds = new Set<string>();
    let lines = 0;
    for await (const line of linesOf(bytes)) {
      header ??= readHeader(metadata.name, line);
      if (lines > 0 && lines <= header.optionSets) optionIds.add(optionsIdOf(line));
      lines++;
    }
    if (header === undefined || lines !== 1 + header.optionSets + header.entries)
      throw new TypeError(`ConfigMap ${metadata.name} has a table of ${lines} lines, which is not whole`);
    return new ReceivedTable(header, optionIds, bytes);
  }

  /** Sets of options in the form of the packet helper. */
  async *optionLines(): AsyncGenerator<string> {
    let number = 0;
    for await (const line of linesOf(this.#bytes)) {
      if (number > this.header.optionSets) return;
      if (number++ > 0) yield line;
    }
  }

  /** `table-text.ts` reads them. They are ordered by MAC address. */
  async *entryLines(): AsyncGenerator<string> {
    let number = 0;
    for await (const line of linesOf(this.#bytes)) if (number++ > this.header.optionSets) yield line;
  }

  /** Finds the guests that have one of these addresses, by address. */
  async guestsOf(addresses: ReadonlySet<string>): Promise<Map<string, FoundGuest>> {
    const found = new Map<string, FoundGuest>();
    if (addresses.size === 0) return found;
    for await (const line of this.entryLines()) {
      const entry = entryOf(line);
      for (const address of entryAddresses(entry))
        if (addresses.has(address)) found.set(address, { entry, ...guestOf(line) });
    }
    return found;
  }

  /** The MAC addresses of VMs. */
  async macsByOwner(owners: ReadonlySet<string>): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>();
    if (owners.size === 0) return found;
    for await (const line of this.entryLines()) {
      const { mac, owner = '' } = entryOf(line);
      if (owners.has(owner)) found.set(owner, [...(found.get(owner) ?? []), mac]);
    }
    return found;
  }
}

function readHeader(name: string, line: string): TableHeader {
  const header = JSON.parse(line) as TableHeader;
  if ((header.format as number) !== TABLE_FORMAT)
    throw new TypeError(
      `ConfigMap ${name} has a table of format ${String(header.format)}, not ${TABLE_FORMAT}: run guest and responders with one image`,
    );
  return header;
}

/** @throws {Error} if it is no gzip, or has more text than a table may have */
async function* linesOf(bytes: Buffer): AsyncGenerator<string> {
  let ready: string[] = [];
  const reader = new LineReader('the table', MAX_TEXT_BYTES, (line) => ready.push(line));
  let size = 0;
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  decompressed.end(bytes);
  for await (const chunk of decompressed as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_TEXT_BYTES) throw new TypeError(`the table has more than ${MAX_TEXT_BYTES} bytes`);
    reader.push(chunk);
    yield* ready;
    ready = [];
  }
}
