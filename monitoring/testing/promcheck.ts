import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { ensureModule } from '../../bed/build/binaries.js';

const SOURCE = join(import.meta.dirname, 'promcheck');

/** The first use compiles the command. */
export const PROMCHECK_TIMEOUT_MS = 10 * 60_000;

export interface Alert {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** Series by name, and the time at which they are evaluated. */
export interface Scenario {
  readonly series: Readonly<Record<string, string>>;
  readonly at: string;
}

export interface PromcheckInput {
  /** What a process serves at /metrics. */
  readonly metrics?: string;
  /** PromQL, of which the metrics are wanted. */
  readonly expressions?: readonly string[];
  /** A file of rules. */
  readonly rules?: string;
  readonly scenarios?: readonly Scenario[];
}

export interface PromcheckOutput {
  /** What promtool would complain about in the metrics and rules. */
  readonly problems: readonly string[];
  /** By expression. */
  readonly metrics: readonly (readonly string[])[];
  /** The firing alerts, by scenario. */
  readonly alerts: readonly (readonly Alert[])[];
}

/** @throws {Error} if an expression or a series cannot be parsed */
export async function promcheck(input: PromcheckInput): Promise<PromcheckOutput> {
  const folder = await ensureModule(SOURCE, () => undefined);
  const child = spawn(join(folder, 'promcheck'), { stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(JSON.stringify(input));
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  const [out, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (code !== 0) throw new Error(`promcheck: ${errors}`);
  return JSON.parse(out) as PromcheckOutput;
}
