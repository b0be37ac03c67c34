import { type FileHandle, mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Where the lines of the audit log go. Writes are never concurrent. */
export interface AuditSink {
  /** The most bytes that one write should have. */
  readonly batchBytes: number;
  /**
   * Writes whole lines. A write that fails is repeated with the same lines, so a reader may see a line twice.
   * @throws {Error} if not all of them are written
   */
  write(lines: string): Promise<void>;
  close(): Promise<void>;
}

interface FileSinkOptions {
  readonly path: string;
  /** A file that has more bytes is rotated. */
  readonly maxBytes: number;
  /** With the current one: `path`, `path.1` and so on. */
  readonly maxFiles: number;
}

/** Appends to a file, and rotates it: `path` is the newest, the file with the highest number the oldest. */
export class FileSink implements AuditSink {
  readonly batchBytes = 65_536;
  readonly #options: FileSinkOptions;
  #file: { readonly handle: FileHandle; bytes: number } | undefined;
  /** A failed write may have left half a line. */
  #isLineOpen = false;

  constructor(options: FileSinkOptions) {
    this.#options = options;
  }

  async write(lines: string): Promise<void> {
    const { maxBytes } = this.#options;
    let file = (this.#file ??= await this.#open());
    const bytes = Buffer.from(this.#isLineOpen ? `\n${lines}` : lines);
    if (file.bytes > 0 && file.bytes + bytes.length > maxBytes) {
      await this.#rotate();
      file = this.#file = await this.#open();
    }
    this.#isLineOpen = true;
    try {
      await file.handle.appendFile(bytes);
    } catch (error) {
      // opened again by the next write: the volume may have been replaced
      await this.close();
      throw error;
    }
    file.bytes += bytes.length;
    this.#isLineOpen = false;
  }

  async close(): Promise<void> {
    const file = this.#file;
    this.#file = undefined;
    await file?.handle.close().catch(() => undefined);
  }

  async #open(): Promise<{ handle: FileHandle; bytes: number }> {
    const { path } = this.#options;
    await mkdir(dirname(path), { recursive: true });
    // the log contains who uses which address
    const handle = await open(path, 'a', 0o640);
    const { size } = await handle.stat();
    // an earlier process may have been killed while it wrote
    if (size > 0) this.#isLineOpen = true;
    return { handle, bytes: size };
  }

  async #rotate(): Promise<void> {
    const { path, maxFiles } = this.#options;
    await this.close();
    const name = (index: number) => (index === 0 ? path : `${path}.${index}`);
    await rm(name(maxFiles - 1), { force: true });
    for (let index = maxFiles - 1; index > 0; index--) {
      await rename(name(index - 1), name(index)).catch((error: unknown) => {
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      });
    }
  }
}
