// Runs the e2e tests with each pair of versions that the bed has: `tsx test/run-matrix.ts [-- options of mocha]`.
import { PAIRS } from '../bed/build/versions.js';
import { e2ePhase } from './run/e2e-phase.js';
import { nameOf, runMatrix } from './run/matrix.js';

/** Longer than that of CI: a pair may have to be built first, on a machine that does other things too. */
const LIMIT_MS = 90 * 60_000;

const [, , dashes, ...mochaArgs] = process.argv;
if (dashes !== undefined && dashes !== '--') throw new TypeError(`"${dashes}": options of mocha follow after --`);
const interrupt = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupt.abort());

const passed = await runMatrix({
  pairs: PAIRS,
  phaseOf: (pair) => ({
    ...e2ePhase({ name: nameOf(pair), limitMs: LIMIT_MS, mochaArgs }),
    env: { BED_KUBERNETES: pair.kubernetes, BED_KUBEVIRT: pair.kubeVirt },
  }),
  interrupt: interrupt.signal,
  print: console.log,
});
process.exitCode = passed ? 0 : 1;
