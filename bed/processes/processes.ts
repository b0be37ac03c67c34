import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Watchdog } from './watchdog.js';

/** A process that does not end after SIGTERM is killed. kube-apiserver may take a minute, which is not needed here. */
const GRACE_MS = 1_500;

const RESTART_MS = 500;

export interface ChildOptions {
  /** Name of the process and of its log file. */
  readonly name: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Stopped after all others. For etcd, because its clients hang if it ends before them. */
  readonly stopLast?: boolean;
  /** Its standard input and output are pipes to this process. Only its standard error goes to the log. */
  readonly hasPipes?: boolean;
}

/** Runs a command. @returns its standard output */
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

/** A child process with its own log file. */
export class Child {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  readonly stopLast: boolean;
  /** Resolves when the process has ended; never rejects. */
  readonly exited: Promise<void>;
  #end: string | undefined;
  readonly #process: ChildProcess;

  constructor(options: ChildOptions, logFile: string) {
    this.name = options.name;
    this.logFile = logFile;
    this.stopLast = options.stopLast ?? false;
    const log = openSync(logFile, 'a');
    // detached, so that Ctrl-C reaches only the bed itself, which then stops its children in the right order
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

  /** Standard input and output of a child with `hasPipes`. */
  get pipes(): { readonly input: Writable | null; readonly output: Readable | null } {
    return { input: this.#process.stdin, output: this.#process.stdout };
  }

  get running(): boolean {
    return this.#end === undefined;
  }

  /** @throws {Error} with the end of the log if the process has ended */
  assertRunning(): void {
    if (this.#end === undefined) return;
    const tail = readFileSync(this.logFile, 'utf8').trimEnd().split('\n').slice(-12).join('\n');
    throw new Error(`${this.name} ended with ${this.#end}; the end of ${this.logFile}:\n${tail}`);
  }

  signal(signal: NodeJS.Signals): void {
    if (this.running) this.#process.kill(signal);
  }

  /** Sends SIGSTOP, and waits until all threads are stopped, because a busy thread may run on for a while. */
  async pause(): Promise<void> {
    this.signal('SIGSTOP');
    while (this.running && !isStopped(this.pid)) await pause(1);
  }

  /** Sends SIGTERM, and SIGKILL if the process has not ended after a grace period. */
  async stop(): Promise<void> {
    if (!this.running) return;
    this.signal('SIGTERM');
    this.signal('SIGCONT'); // a paused process does not handle SIGTERM
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
 * The child processes of one bed. They end with this process, however it ends: by the handler of `exit`, or by the watchdog after
 * SIGKILL.
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

  /** @param scratchDir holds temporary files of the processes; the watchdog removes it after it had to stop them */
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
    if (child.pid === 0) return child; // it could not be started; its `exited` reports that
    this.#children.add(child);
    this.#watchdog.watch(child.pid);
    void child.exited.then(() => {
      this.#watchdog.unwatch(child.pid);
      this.#children.delete(child);
    });
    return child;
  }

  /**
   * Starts the process again each time it ends, as a Deployment does. KubeVirt's processes exit when they lose their leader lease,
   * for instance while the API server is down.
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

/** Whether all threads are stopped, by proc(5). True on a machine without that folder. */
function isStopped(pid: number): boolean {
  if (!existsSync('/proc/self/task')) return true;
  const folder = `/proc/${pid}/task`;
  try {
    return readdirSync(folder).every((thread) => readFileSync(join(folder, thread, 'stat'), 'utf8').includes(' T '));
  } catch {
    return false; // a thread has just ended
  }
}
