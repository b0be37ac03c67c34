import type { VersionPair } from '../../bed/build/versions.js';
import { type TestCounts, closingLine, succeeded } from './counts.js';
import { type Phase, runPhase } from './phase.js';

export interface MatrixOptions {
  readonly pairs: readonly VersionPair[];
  /** The tests of a pair. */
  readonly phaseOf: (pair: VersionPair) => Phase;
  readonly interrupt: AbortSignal;
  readonly print: (line: string) => void;
}

/** Runs the tests of all pairs, one after the other, also after a failure. @returns whether all of them passed */
export async function runMatrix({ pairs, phaseOf, interrupt, print }: MatrixOptions): Promise<boolean> {
  const lines: string[] = [];
  let passed = true;
  for (const pair of pairs) {
    const name = nameOf(pair);
    print(`\n=== ${name}`);
    const run = interrupt.aborted ? undefined : await runPhase(phaseOf(pair), interrupt);
    const result = run === undefined ? 'not run' : resultOf(run.counts, interrupt);
    passed &&= result === 'passed';
    const more = run && ` (${closingLine(run.counts)}, ${(run.durationMs / 60_000).toFixed(0)} min)`;
    lines.push(`${name}: ${result}${more ?? ''}`);
  }
  print('');
  lines.forEach(print);
  return passed;
}

function resultOf(counts: TestCounts, interrupt: AbortSignal): string {
  if (interrupt.aborted) return 'interrupted';
  return succeeded(counts) ? 'passed' : 'failed';
}

export function nameOf({ kubernetes, kubeVirt }: VersionPair): string {
  return `Kubernetes ${kubernetes} and KubeVirt ${kubeVirt}`;
}
