import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

export const PLUGIN = join(import.meta.dirname, '..', '..', '..', 'dist', 'kubectl-holdfast.cjs');

export interface PluginResult {
  /** Undefined if it was killed. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs `kubectl holdfast …` as built by build.js. */
export class KubectlPlugin {
  readonly result: Promise<PluginResult>;
  readonly #kill: (signal: 'SIGINT' | 'SIGKILL') => void;

  constructor(kubeconfig: string, args: readonly string[]) {
    const child = spawn(PLUGIN, [...args, '--kubeconfig', kubeconfig], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#kill = (signal) => child.kill(signal);
    const exit = new Promise<number | undefined>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code ?? undefined));
    });
    this.result = Promise.all([exit, text(child.stdout), text(child.stderr)]).then(([exitCode, stdout, stderr]) => ({
      exitCode,
      stdout,
      stderr,
    }));
  }

  /** SIGKILL. */
  kill(): void {
    this.#kill('SIGKILL');
  }

  /** Ctrl-C. */
  interrupt(): void {
    this.#kill('SIGINT');
  }
}
