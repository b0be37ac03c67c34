import { mkdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const ROOT = '/sys/fs/cgroup/memory';
const SAMPLE_MS = 50;

/** A cgroup of version 1 that limits the memory of the processes in it, as kubelet limits containers. Pages of files count, and the kernel takes them back first. */
export class MemoryCgroup {
  /** The largest memory that is not of files, of all samples. */
  peakMiB = 0;
  readonly #folder: string;
  readonly #ended = new AbortController();
  readonly #sampled: Promise<void>;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#sampled = this.#sample();
  }

  static async create(name: string, limitMiB: number): Promise<MemoryCgroup> {
    const folder = join(ROOT, `holdfast-bench-${process.pid}-${name}`);
    await mkdir(folder);
    await writeFile(join(folder, 'memory.limit_in_bytes'), String(limitMiB << 20));
    return new MemoryCgroup(folder);
  }

  /** The command of a shell that puts itself into the cgroup. */
  get enter(): string {
    return `echo $$ > ${this.#folder}/cgroup.procs`;
  }

  /** Only what it uses from now on counts. */
  async add(pid: number): Promise<void> {
    await writeFile(join(this.#folder, 'cgroup.procs'), String(pid));
  }

  /** How many processes the kernel has killed because of the limit. */
  async kills(): Promise<number> {
    return numberOf(await readFile(join(this.#folder, 'memory.oom_control'), 'utf8'), 'oom_kill');
  }

  /** Its processes must have ended. */
  async remove(): Promise<void> {
    this.#ended.abort();
    await this.#sampled;
    await rmdir(this.#folder);
  }

  async #sample(): Promise<void> {
    while (!this.#ended.signal.aborted) {
      const stat = await readFile(join(this.#folder, 'memory.stat'), 'utf8');
      this.peakMiB = Math.max(this.peakMiB, numberOf(stat, 'rss') / 2 ** 20);
      await pause(SAMPLE_MS);
    }
  }
}

function numberOf(text: string, key: string): number {
  return Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? NaN);
}
