import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';

/**
 * Reads "watch PID" and "forget PID" from its standard input. The kernel closes this pipe when the bed ends, for whatever reason.
 * Then the script kills the processes that are still watched. It is a shell script because a shell needs only one megabyte.
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

/** Kills the bed's processes if the bed cannot do that itself, for instance after SIGKILL. */
export class Watchdog {
  readonly #shell: ChildProcess;

  /** @param scratchDir removed after the processes were killed, so it must not contain logs */
  constructor(scratchDir: string) {
    this.#shell = spawn('/bin/sh', ['-c', SCRIPT, 'watchdog', scratchDir], {
      stdio: ['pipe', 'ignore', 'ignore'],
      detached: true, // out of reach of the terminal's Ctrl-C
    });
    this.#shell.stdin?.on('error', () => undefined); // the shell has ended
  }

  watch(pid: number): void {
    this.#say(`watch ${pid}`);
  }

  /** Must be called as soon as a process has ended, because its id may be reused. */
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
