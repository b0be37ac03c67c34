import { nameFirst } from '../api/json.js';
import { expiryOf, splitPem } from '../tls/pem.js';
import { neededPolicies } from './doctor/check-admission.js';
import { isUnchecked } from './doctor/diagnose.js';
import { type Finding, NOTHING_CHECKED, formatFindings, formatRefused, isError } from './doctor/finding.js';
import type { ObservedCluster } from './doctor/observe.js';
import { type ComponentState, componentsOf, isReady } from './installation.js';
import { type Column, type Output, count, tableLines } from './output.js';
import type { Line } from './terminal.js';

type ShownComponent = Omit<ComponentState, 'pods' | 'workload' | 'areGatesOfKubeVirt' | 'electsLeader'>;

/** The state of an installation, in a few lines. */
export interface Status {
  /** False if the user may read none of it: then nobody knows whether it is healthy. */
  readonly checked: boolean;
  readonly healthy: boolean;
  readonly client: string;
  readonly components: readonly ShownComponent[];
  readonly webhooks: readonly {
    readonly name: string;
    /** Whether the API server could call it; absent: not tried. */
    readonly answers: boolean | undefined;
    /** When the last CA of its `caBundle` expires; absent: it has none. The serving certificate is renewed earlier. */
    readonly caExpires: string | undefined;
  }[];
  readonly policies: { readonly present: number; readonly expected: number } | undefined;
  /** Nodes whose agent is not ready; undefined if the user may not list workloads or pods. */
  readonly agentsNotReady: readonly string[] | undefined;
  readonly findings: readonly Finding[];
  readonly refused: readonly string[];
}

export function statusOf(observed: ObservedCluster, findings: readonly Finding[], client: string): Status {
  const components = componentsOf(observed);
  const needed = neededPolicies(observed);
  const checked = !isUnchecked(observed);
  return {
    checked,
    healthy: checked && !findings.some(isError),
    client,
    components: components.map(
      ({ pods: _pods, workload: _workload, areGatesOfKubeVirt: _areOfKubeVirt, electsLeader: _elects, ...state }) =>
        state,
    ),
    webhooks: webhooksOf(observed),
    policies: observed.policies && {
      present: needed.filter((name) => observed.policies?.some(({ metadata }) => metadata.name === name)).length,
      expected: needed.length,
    },
    agentsNotReady:
      observed.workloads &&
      observed.pods &&
      components
        .filter(({ name }) => name === 'agent')
        .flatMap(({ pods }) => pods.filter((pod) => !isReady(pod)))
        .map(({ metadata, spec }) => spec?.nodeName ?? metadata.name)
        .sort(),
    findings,
    refused: observed.refused,
  };
}

function webhooksOf({ configurations = [], trialCalls }: ObservedCluster): Status['webhooks'] {
  return configurations.map(({ metadata: { name }, webhooks = [] }) => {
    const bundles = webhooks.map(({ clientConfig }) => Buffer.from(clientConfig.caBundle ?? '', 'base64').toString());
    const ends = bundles.flatMap(splitPem).flatMap((pem) => expiryOf(pem) ?? []);
    const tried = trialCalls.find(({ configuration }) => configuration === name);
    return {
      name,
      answers: tried === undefined ? undefined : tried.error === undefined,
      caExpires: ends.length === 0 ? undefined : new Date(Math.max(...ends)).toISOString(),
    };
  });
}

/** `-o json` has all. */
const MAX_NODES = 10;

const COLUMNS: readonly Column<ShownComponent>[] = [
  { header: 'COMPONENT', value: ({ name }) => name },
  { header: 'READY', value: readyCell },
  { header: 'VERSION', value: ({ versions }) => versions.join(', ') },
  { header: 'LEADER', value: ({ leader }) => leader ?? '' },
  { header: 'NAMESPACE', value: ({ namespace }) => namespace, isWide: true },
  { header: 'GATES', value: ({ gates }) => gates || 'default', isWide: true },
];

function readyCell({ ready, wanted }: Pick<ComponentState, 'ready' | 'wanted'>) {
  return { text: `${ready}/${wanted}`, style: ready >= wanted && wanted > 0 ? 'green' : 'red' } as const;
}

export function formatStatus(status: Status): Output {
  return {
    data: status,
    lines: (isWide) => [
      ...tableLines(COLUMNS, status.components, isWide),
      '',
      ...status.webhooks.map(formatWebhook),
      ...(status.policies === undefined ? [] : [`policies: ${status.policies.present} of ${status.policies.expected}`]),
      ...(status.agentsNotReady?.length ? [`agents not ready: ${nameFirst(status.agentsNotReady, MAX_NODES)}`] : []),
      `kubectl holdfast: ${status.client}`,
      '',
      ...formatFindings(status.findings),
      ...formatRefused(status.refused),
      verdictOf(status),
    ],
  };
}

function formatWebhook({ name, answers, caExpires }: Status['webhooks'][number]): Line {
  const state = answers === undefined ? 'not tried' : answers ? 'answers' : 'does not answer';
  const end = caExpires === undefined ? 'no CA in caBundle' : `CA valid until ${caExpires.slice(0, 10)}`;
  return `webhook ${name}: ${state}, ${end}`;
}

function verdictOf({ checked, healthy, findings, refused }: Status): Line {
  if (!checked) return [{ text: NOTHING_CHECKED, style: 'yellow' }];
  if (!healthy) return [{ text: 'not healthy', style: 'red' }, `: ${count(findings.filter(isError).length, 'error')}`];
  if (refused.length > 0) return 'nothing is wrong with what was checked';
  return [{ text: 'healthy', style: 'green' }];
}
