import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/**
 * Reads "watch PID" and "forget PID" from its standard input. The input ends when the bed does, however it does, since the
 * kernel closes the pipe: whatever is still watched then is ended. A shell, because it costs one megabyte.
 */
const SCRIPT = `
pids=" "
while read -r verb pid; do
  case $verb in
    watch) pids="$pids$pid " ;;
    forget) pids="\${pids%% $pid *} \${pids#* $pid }" ;;
    dismiss) exit 0 ;;
  esac
done
[ "$pids" = " " ] || kill -TERM $pids 2>/dev/null
[ "$pids" = " " ] || { sleep 1; kill -KILL $pids 2>/dev/null; }
rm -rf -- "$1"
`;

/** Ends the bed's processes when the bed can no longer do it, as after SIGKILL. */
export class Watchdog {
  readonly #shell: ChildProcess;

  /** @param scratchDir removed after the processes were ended; logs belong elsewhere */
  constructor(scratchDir: string) {
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'watchdog', scratchDir], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true, // out of reach of the terminal's Ctrl-C
    });
    this.#shell.stdin?.on('error', () => undefined); // the shell is gone: nothing left to tell it
  }

  watch(pid: number): void {
    this.#say(`watch ${pid}`);
  }

  /** Must be said as soon as a process is gone: its id may be given to another. */
  unwatch(pid: number): void {
    this.#say(`forget ${pid}`);
  }

  async stop(): Promise<void> {
    if (this.#shell.exitCode !== null || this.#shell.signalCode !== null) return;
    const gone = once(this.#shell, 'exit');
    this.#say('dismiss');
    await gone;
  }

  #say(line: string): void {
    if (this.#shell.stdin?.writable) this.#shell.stdin.write(`${line}\n`);
  }
}
