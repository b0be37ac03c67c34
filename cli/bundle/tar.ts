import { shortHash } from '../../api/names.js';

/** A file of an archive. */
export interface ArchivedFile {
  /** Segments of letters, digits, `.`, `_` and `-`; others are replaced. */
  readonly path: readonly string[];
  readonly text: string;
}

const BLOCK = 512;
/** So that four segments fit into the fields `prefix` and `name`. */
const MAX_SEGMENT = 48;

/**
 * Yields the bytes of a tar archive (POSIX ustar), one file after the other.
 * @param folder in which all files are
 * @param time of the files, in seconds since the epoch
 */
export async function* tarOf(
  folder: string,
  files: AsyncIterable<ArchivedFile>,
  time: number,
): AsyncGenerator<Buffer, void, undefined> {
  for await (const { path, text } of files) {
    const content = Buffer.from(text);
    yield header([folder, ...path].map(safeSegment), content.length, time);
    yield content;
    yield Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
  }
  yield Buffer.alloc(2 * BLOCK);
}

/** No archive may write elsewhere than into its folder when it is unpacked. */
function safeSegment(segment: string): string {
  const safe = segment.replace(/[^\w.-]/g, '_').replace(/^\.+/, '_');
  return safe.length <= MAX_SEGMENT ? safe : `${safe.slice(0, MAX_SEGMENT - 9)}-${shortHash(segment, 8)}`;
}

function header(path: readonly string[], size: number, time: number): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, offset: number, length: number) =>
    block.write(`${value.toString(8).padStart(length - 1, '0')}\0`, offset, 'latin1');
  block.write(path.at(-1) ?? '', 0, 'latin1');
  octal(0o600, 100, 8);
  octal(0, 108, 8);
  octal(0, 116, 8);
  octal(size, 124, 12);
  octal(time, 136, 12);
  block.fill(' ', 148, 156);
  // a regular file
  block.write('0', 156, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  block.write(path.slice(0, -1).join('/'), 345, 'latin1');
  const checksum = block.reduce((sum, byte) => sum + byte, 0);
  block.write(`${checksum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}
