import { totalmem } from 'node:os';
import { isolated, reasonAgainstRealNodes } from '../../bed/real-nodes/isolation.js';
import { filesOf } from './e2e-lanes.js';
import { type MochaPhaseOptions, mochaPhase, type Phase } from './phase.js';

const MINUTE_MS = 60_000;
/** Longer than the waits of a story on a machine whose cores stall: a wait that times out says what it waited for, mocha does not. */
const STORY_MS = 5 * MINUTE_MS;

type Options = Pick<MochaPhaseOptions, 'name' | 'limitMs' | 'mochaArgs'> & { files?: readonly string[] | undefined };

/** Two beds, their tests and what builds them. */
const MEMORY_OF_GROUPS = 12 * 2 ** 30;
/** About the same time each. A list of the other folders would leave new ones out. */
const FIRST_GROUP = 'agent|claims|cli|control-plane|guest|smoke';
/** Stories on real nodes: kubelet, containerd, and Holdfast in pods. */
const REAL = 'nodes';
/** The others take ten minutes: `make e2e NODES=real`. */
const EVERY_RUN = `e2e/${REAL}/@(addresses|installation|ipv6|runtime).e2e.ts`;
/** Files of stories in which launchers run guests. */
const GUESTS = `e2e/${REAL}/guest-`;
/** The stories of a value of NODES. */
const LANES: Readonly<Record<string, string>> = { real: `e2e/${REAL}/!(guest-*).e2e.ts`, guests: `${GUESTS}*.e2e.ts` };
/** Values of NODES for which there are no stories, with the reason. */
const WITHOUT_STORIES: Readonly<Record<string, string>> = {
  kubevirt:
    "virt-handler and virt-launcher of KubeVirt are not run (docs/reference/not-run.md). NODES=guests runs guests with KubeVirt's network code, and NODES=real RUNTIME=containerd-2 has containerd from source",
};
const GROUPS = [
  { files: `e2e/@(${FIRST_GROUP})/*.e2e.ts`, ports: '20000-26000' },
  { files: `e2e/!(${FIRST_GROUP}|${REAL})/*.e2e.ts`, ports: '26000-32000' },
];

/** The e2e tests, on a bed or on the cluster that E2E_KUBECONFIG names. */
export function e2ePhase(options: Options): Phase {
  const all = filesOf(process.env.E2E_KUBECONFIG === undefined ? 'bed' : 'cluster');
  const files = options.files ?? [all];
  return mochaPhase({ ...options, files, timeoutMs: STORY_MS, hooks: 'bed/story/hooks.ts' });
}

/**
 * The same in two processes, which each have a bed: a story uses about one core. One process if some files are named, on a cluster,
 * and where memory is scarce. Files of stories on real nodes, or with NODES=real all files, run there.
 */
export function e2ePhases(options: Options, memory = totalmem()): Phase[] {
  const { files } = options;
  const { NODES: nodes = '' } = process.env;
  const lane = LANES[nodes];
  const reason = WITHOUT_STORIES[nodes];
  if (reason !== undefined) throw new TypeError(`NODES=${nodes}: ${reason}`);
  const named = files ?? (lane === undefined ? undefined : [lane]);
  if (named !== undefined) {
    const isReal = (file: string) => lane !== undefined || file.startsWith(`e2e/${REAL}/`);
    const simulated = named.filter((file) => !isReal(file));
    const phases = simulated.length > 0 ? [e2ePhase({ ...options, files: simulated })] : [];
    return [...phases, ...nodePhases({ ...options, files: named.filter(isReal) })];
  }
  if (process.env.E2E_KUBECONFIG !== undefined || memory < MEMORY_OF_GROUPS) return [e2ePhase(options)];
  return GROUPS.map(({ files: group, ports }, index) => {
    const name = `${options.name} ${String(index + 1)}`;
    return { ...e2ePhase({ ...options, name, files: [group] }), env: { BED_PORTS: ports, BED_IS_BUILT: 'yes' } };
  });
}

/**
 * Stories on real nodes, in namespaces of their own, with everything built before: no network is there. Without files, those that every
 * run of all tests has.
 */
export function nodePhases({ files = [EVERY_RUN], ...options }: Options): Phase[] {
  if (files.length === 0 || process.env.E2E_KUBECONFIG !== undefined) return [];
  const reason = reasonAgainstRealNodes();
  if (reason !== undefined) {
    console.log(`Stories on real nodes are not run: ${reason}`);
    return [];
  }
  const phaseOf = (name: string, part: readonly string[], env: Readonly<Record<string, string>> = {}): Phase[] => {
    if (part.length === 0) return [];
    const phase = e2ePhase({ ...options, name, files: part });
    return [{ ...phase, ...isolated(phase), env: { BED_NODES: 'real', BED_IS_BUILT: 'yes', ...env } }];
  };
  const hasGuests = (file: string) => file.startsWith(GUESTS);
  return [
    ...phaseOf(
      'e2e nodes',
      files.filter((file) => !hasGuests(file)),
    ),
    ...phaseOf('e2e guests', files.filter(hasGuests), { BED_GUESTS: 'yes' }),
  ];
}
