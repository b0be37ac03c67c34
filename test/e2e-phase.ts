import { totalmem } from 'node:os';
import { type MochaPhaseOptions, mochaPhase, type Phase } from './phase.js';

const MINUTE_MS = 60_000;

type Options = Pick<MochaPhaseOptions, 'name' | 'limitMs' | 'mochaArgs'> & { files?: readonly string[] | undefined };

/** Two beds, their tests and what builds them. */
const MEMORY_OF_GROUPS = 12 * 2 ** 30;
/** About the same time each. A list of the other folders would leave new ones out. */
const FIRST_GROUP = 'agent|claims|cli|guest|smoke';
const GROUPS = [
  { files: `e2e/@(${FIRST_GROUP})/*.e2e.ts`, ports: '20000-26000' },
  { files: `e2e/!(${FIRST_GROUP})/*.e2e.ts`, ports: '26000-32000' },
];

/** The e2e tests, on a bed or on the cluster that E2E_KUBECONFIG names. */
export function e2ePhase(options: Options): Phase {
  // The tests of some folders start their own control plane, so they cannot test an existing cluster.
  const all =
    process.env.E2E_KUBECONFIG === undefined ? 'e2e/**/*.e2e.ts' : 'e2e/!(control-plane|smoke|upgrade)/*.e2e.ts';
  const files = options.files ?? [all];
  return mochaPhase({ ...options, files, timeoutMs: 2 * MINUTE_MS, hooks: 'bed/story/hooks.ts' });
}

/**
 * The same in two processes, which each have a bed: a story uses about half of two cores, because it waits. One process if some
 * files are named, on a cluster, and where memory is scarce.
 */
export function e2ePhases(options: Options, memory = totalmem()): Phase[] {
  const isOne = (options.files ?? process.env.E2E_KUBECONFIG) !== undefined || memory < MEMORY_OF_GROUPS;
  if (isOne) return [e2ePhase(options)];
  return GROUPS.map(({ files, ports }, index) => {
    const name = `${options.name} ${String(index + 1)}`;
    return { ...e2ePhase({ ...options, name, files: [files] }), env: { BED_PORTS: ports, BED_IS_BUILT: 'yes' } };
  });
}
