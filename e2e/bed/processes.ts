import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Watchdog } from './watchdog.js';

/** A process that ignores SIGTERM for longer is killed. kube-apiserver may take a minute, and nothing here is worth it. */
const GRACE_MS = 1_500;

const RESTART_MS = 500;

export interface ChildOptions {
  /** Also the name of the log file. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Stopped after all the others (etcd: whoever outlives it hangs on it). */
  readonly stopLast?: boolean;
  /** Its standard input and output are for us to talk to it; only its standard error goes to the log. */
  readonly hasPipes?: boolean;
}

/** The standard output of a command that ends by itself. */
export async function capture(
  command: string,
  args: readonly string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv } = {},
): Promise<string> {
  const { stdout } = await promisify(execFile)(command, [...args], {
    ...options,
    maxBuffer: 64 << 20,
    encoding: 'utf8',
  });
  return stdout;
}

/** A running child with a log file of its own. */
export class Child {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  readonly stopLast: boolean;
  /** Resolves once the process is gone; never rejects. */
  readonly exited: Promise<void>;
  #end: string | undefined;
  readonly #process: ChildProcess;

  constructor(options: ChildOptions, logFile: string) {
    this.name = options.name;
    this.logFile = logFile;
    this.stopLast = options.stopLast ?? false;
    const log = openSync(logFile, 'a');
    // Detached: a Ctrl-C at the terminal reaches only the bed itself, which then ends its children in the right order.
    this.#process = spawn(options.command, [...options.args], {
      cwd: options.cwd,
      env: { ...process.env, ...options.env },
      stdio: options.hasPipes ? ['pipe', 'pipe', log] : ['ignore', log, log],
      detached: true,
    });
    closeSync(log);
    this.pid = this.#process.pid ?? 0;
    this.exited = new Promise((resolve) => {
      const finish = (end: string) => {
        this.#end = end;
        resolve();
      };
      this.#process.once('error', (error) => finish(error.message));
      this.#process.once('exit', (code, signal) => finish(signal ?? `code ${code ?? 'unknown'}`));
    });
  }

  /** Of a child that talks. */
  get pipes(): { readonly input: Writable | null; readonly output: Readable | null } {
    return { input: this.#process.stdin, output: this.#process.stdout };
  }

  get running(): boolean {
    return this.#end === undefined;
  }

  /** @throws {Error} with the end of the log if the process is gone */
  assertRunning(): void {
    if (this.#end === undefined) return;
    const tail = readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-12).join('\n');
    throw new Error(`${this.name} ended with ${this.#end}; the end of ${this.logFile}:\n${tail}`);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.running) this.#process.kill(signal);
  }

  /** SIGSTOP, and the wait until it has come to a stand: the kernel answers before, and a busy thread may go on for a while. */
  async pause(): Promise<void> {
    this.signal('SIGSTOP');
    while (this.running && !isStopped(this.pid)) await pause(1);
  }

  /** SIGTERM, some grace, SIGKILL. */
  async stop(): Promise<void> {
    if (!this.running) return;
    this.signal('SIGTERM');
    this.signal('SIGCONT'); // a paused process would sit on its SIGTERM
    const impatience = setTimeout(() => this.signal('SIGKILL'), GRACE_MS);
    await this.exited;
    clearTimeout(impatience);
  }

  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exited;
  }
}

/**
 * The children of one bed. Whatever happens to this process – an exception, process.exit, a signal, SIGKILL –
 * they end too: here on `exit`, else through the watchdog.
 */
export class Processes {
  readonly logDir: string;
  readonly #temporary: string;
  readonly #children = new Set<Child>();
  readonly #watchdog: Watchdog;
  #stopping = false;
  readonly #onExit = () => {
    for (const child of this.#children) child.signal('SIGKILL');
  };

  /** @param scratchDir what the watchdog removes after it had to end the processes; holds their temporary files, too */
  constructor(logDir: string, scratchDir: string) {
    this.logDir = logDir;
    this.#temporary = join(scratchDir, 'tmp');
    mkdirSync(logDir, { recursive: true });
    mkdirSync(this.#temporary, { recursive: true });
    this.#watchdog = new Watchdog(scratchDir);
    process.on('exit', this.#onExit);
  }

  /** @throws {Error} once `stop` was called */
  start(options: ChildOptions): Child {
    if (this.#stopping) throw new Error(`${options.name} is not started: the bed is ending`);
    const env = { TMPDIR: this.#temporary, ...options.env };
    const child = new Child({ ...options, env }, join(this.logDir, `${options.name}.log`));
    if (child.pid === 0) return child; // it could not be started, as it will say by itself
    this.#children.add(child);
    this.#watchdog.watch(child.pid);
    void child.exited.then(() => {
      this.#watchdog.unwatch(child.pid);
      this.#children.delete(child);
    });
    return child;
  }

  /**
   * From now on starts the process again whenever it ends, as its Deployment would: KubeVirt's processes end themselves when
   * they lose their lease, which an absence of the API server may cost them.
   */
  keepRunning(child: Child, options: ChildOptions): void {
    void child.exited.then(() => {
      setTimeout(() => {
        if (!this.#stopping) this.keepRunning(this.start(options), options);
      }, RESTART_MS).unref();
    });
  }

  list(): { name: string; pid: number }[] {
    return [...this.#children].map(({ name, pid }) => ({ name, pid }));
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    const children = [...this.#children];
    await Promise.all(children.filter((child) => !child.stopLast).map((child) => child.stop()));
    await Promise.all(children.map((child) => child.stop()));
    process.off('exit', this.#onExit);
    await this.#watchdog.stop();
  }
}

/** All threads of it, as proc(5) tells of them; on a machine that has no such folder nobody does. */
function isStopped(pid: number): boolean {
  if (!existsSync('/proc/self/task')) return true;
  const folder = `/proc/${pid}/task`;
  try {
    return readdirSync(folder).every((thread) => readFileSync(join(folder, thread, 'stat'), 'utf8').includes(' T '));
  } catch {
    return false; // one of them has just ended
  }
}
