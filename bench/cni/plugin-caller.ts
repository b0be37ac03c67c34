import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import { ensureModule } from '../../bed/build/binaries.js';
import type { Child, Processes } from '../../bed/processes/processes.js';

const SOURCE = join(import.meta.dirname, 'caller');
const ROOT = join(import.meta.dirname, '..', '..');

/** The result of one plugin process. */
export interface PluginRun {
  /** 0: success. */
  readonly exit: number;
  readonly output: string;
  /** From before the process starts until its end is known. */
  readonly ms: number;
  /** User and system time of the process. */
  readonly cpuMs: number;
}

/** Runs the plugin as a container runtime does, in one process per call. */
export class PluginCaller {
  readonly #child: Child;
  readonly #waiting = new Map<number, (ran: PluginRun) => void>();
  #calls = 0;

  static async start(processes: Processes, progress: (line: string) => void): Promise<PluginCaller> {
    const plugin = `holdfast-linux-${process.arch === 'x64' ? 'amd64' : process.arch}`;
    return PluginCaller.#startFor(processes, await ensureModule(SOURCE, progress), join(ROOT, 'dist', 'cni', plugin));
  }

  /** Runs a static binary that does nothing instead of the plugin. */
  static async startForNothing(processes: Processes, progress: (line: string) => void): Promise<PluginCaller> {
    const folder = await ensureModule(SOURCE, progress);
    return PluginCaller.#startFor(processes, folder, join(folder, 'nothing'));
  }

  static #startFor(processes: Processes, folder: string, plugin: string): PluginCaller {
    const name = `caller-of-${basename(plugin)}`;
    return new PluginCaller(processes.start({ name, command: join(folder, 'caller'), args: [plugin], hasPipes: true }));
  }

  private constructor(child: Child) {
    this.#child = child;
    createInterface({ input: child.pipes.output! }).on('line', (line) => {
      const { id, ...ran } = JSON.parse(line) as PluginRun & { id: number };
      this.#waiting.get(id)?.(ran);
      this.#waiting.delete(id);
    });
  }

  /** Runs the plugin once. @throws {Error} if the caller process has ended */
  async call(env: Readonly<Record<string, string>>, config: object): Promise<PluginRun> {
    const id = this.#calls++;
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const ran = new Promise<PluginRun>((resolve) => this.#waiting.set(id, resolve));
    this.#child.pipes.input!.write(`${JSON.stringify({ id, env: variables, config: JSON.stringify(config) })}\n`);
    const outcome = await Promise.race([ran, this.#child.exited]);
    if (outcome !== undefined) return outcome;
    this.#child.assertRunning();
    throw new Error('the caller has ended');
  }
}
