import { type MochaPhaseOptions, mochaPhase, type Phase } from './phase.js';

const MINUTE_MS = 60_000;

/** The e2e tests, on a bed or on the cluster that E2E_KUBECONFIG names. */
export function e2ePhase(
  options: Pick<MochaPhaseOptions, 'name' | 'limitMs' | 'mochaArgs'> & { files?: readonly string[] | undefined },
): Phase {
  // The tests of some folders start their own control plane, so they cannot test an existing cluster.
  const all =
    process.env.E2E_KUBECONFIG === undefined ? 'e2e/**/*.e2e.ts' : 'e2e/!(control-plane|smoke|upgrade)/*.e2e.ts';
  const files = options.files ?? [all];
  return mochaPhase({ ...options, files, timeoutMs: 2 * MINUTE_MS, hooks: 'bed/story/hooks.ts' });
}
