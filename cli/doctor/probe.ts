import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { StatusError, isForbidden } from '../../kube/errors.js';
import { clusterResource } from '../../kube/resource.js';
import { ADDRESS_POOLS, PODS, SUBJECT_ACCESS_REVIEWS } from '../../kube/resources.js';
import { describeForbidden } from '../forbidden.js';
import { type InstalledWorkload, componentOf } from '../installation.js';
import type { PermittedReader } from '../reader.js';

const SELF_SUBJECT_REVIEWS = clusterResource('authentication.k8s.io/v1', 'selfsubjectreviews', 'SelfSubjectReview');
/** k8s.io/apiserver, pkg/admission/plugin/webhook/errors: why a webhook ended the request. */
const BY_WEBHOOK = /(failed calling|admission) webhook "([^"]{1,253})".*/;
const OWN_WEBHOOKS = '.ipam.holdfast.dev';
/** Of the objects with which webhooks are tried; they are never stored. */
const TRIAL = 'holdfast-doctor';
/** The API server accepts no name in a review. */
const UNNAMED = {} as ObjectMeta;

/** What a trial call of a webhook gave. `error`: what the API server said. */
export interface TrialCall {
  readonly configuration: string;
  readonly error?: string;
}

/** A right that a process needs. */
export interface ProcessRight {
  readonly account: string;
  readonly verb: string;
  readonly group: string;
  readonly resource: string;
}

export type ProbingReader = PermittedReader<Pick<Client, 'get' | 'listAs' | 'create'>>;

type Right = Omit<ProcessRight, 'account'>;

const right = (verb: string, resource: string, group = ''): Right => ({ verb, group, resource });
const [OWN, CLAIMS, KUBEVIRT] = ['ipam.holdfast.dev', 'k8s.cni.cncf.io', 'kubevirt.io'];
const [CONTROLLER, WEBHOOK, IPAM, GUEST] = [
  [
    right('list', 'virtualmachines', KUBEVIRT),
    right('list', 'virtualmachineinstances', KUBEVIRT),
    right('update', 'virtualmachines/finalizers', KUBEVIRT),
    right('update', 'virtualmachineinstances/finalizers', KUBEVIRT),
    right('list', 'network-attachment-definitions', CLAIMS),
    right('create', 'ipamclaims', CLAIMS),
    right('patch', 'ipamclaims', CLAIMS),
    right('delete', 'ipamclaims', CLAIMS),
    right('list', 'pods'),
  ],
  [
    right('list', 'virtualmachineinstances', KUBEVIRT),
    right('list', 'ipamclaims', CLAIMS),
    right('list', 'namespaces'),
  ],
  [
    right('create', 'addresspools', OWN),
    right('patch', 'addresspools', OWN),
    right('delete', 'addresspools', OWN),
    right('patch', 'addresspools/status', OWN),
    right('serve', 'addresspools', OWN),
    right('create', 'addressleases', OWN),
    right('patch', 'addressleases', OWN),
    right('delete', 'addressleases', OWN),
    right('patch', 'ipamclaims/status', CLAIMS),
    right('list', 'network-attachment-definitions', CLAIMS),
    right('list', 'pods'),
  ],
  [
    right('list', 'virtualmachineinstances', KUBEVIRT),
    right('patch', 'ipamclaims/status', CLAIMS),
    right('patch', 'addressleases', OWN),
    right('create', 'secrets'),
    right('patch', 'secrets'),
  ],
];

/** The rights without which a process cannot do its work, by component. A test compares them with the manifests. */
export const NEEDED_RIGHTS: Readonly<Record<string, readonly Right[]>> = {
  controller: CONTROLLER,
  webhook: WEBHOOK,
  ipam: IPAM,
  guest: GUEST,
  all: [...CONTROLLER, ...WEBHOOK, ...IPAM, ...GUEST],
  agent: [
    right('create', 'addressleases', OWN),
    right('patch', 'addressleases', OWN),
    right('list', 'addresspools', OWN),
    right('list', 'network-attachment-definitions', CLAIMS),
  ],
  capacity: [right('patch', 'nodes/status')],
};

/** Reads the clock of the API server, in milliseconds since the epoch. Every user may. */
export async function serverTime({ client }: { client: Pick<Client, 'create'> }): Promise<number | undefined> {
  const review = await client.create(SELF_SUBJECT_REVIEWS, { metadata: UNNAMED });
  const time = Date.parse(review.metadata.creationTimestamp ?? '');
  return Number.isNaN(time) ? undefined : time;
}

/** Lets the API server call the webhooks, with objects that are checked and not stored. */
export async function callWebhooks(reader: ProbingReader, configurations: readonly KubeObject[]): Promise<TrialCall[]> {
  const has = (name: string) => configurations.some(({ metadata }) => metadata.name === name);
  const calls = [
    ...(has('holdfast-ipam') ? [tryCall(reader, 'holdfast-ipam', () => createPool(reader))] : []),
    ...(has('holdfast-webhook') ? [tryCall(reader, 'holdfast-webhook', () => createLauncher(reader))] : []),
  ];
  return (await Promise.all(calls)).flat();
}

function createPool({ client }: ProbingReader): Promise<unknown> {
  // 192.0.2.0/24 is for documentation: RFC 5737
  const spec = { network: TRIAL, subnets: [{ cidr: '192.0.2.0/24' }] };
  return client.create(ADDRESS_POOLS, { metadata: { name: TRIAL }, spec }, { dryRun: true });
}

function createLauncher({ client }: ProbingReader): Promise<unknown> {
  const metadata = {
    ...{ name: TRIAL, namespace: 'default', labels: { [LAUNCHER_LABEL]: LAUNCHER_LABEL_VALUE } },
    annotations: { [NETWORKS_ANNOTATION]: '[]' },
  };
  const pod: KubeObject = { metadata };
  return client.create(PODS, { ...pod, spec: { containers: [{ name: 'none', image: 'none' }] } } as KubeObject, {
    dryRun: true,
  });
}

async function tryCall(
  reader: ProbingReader,
  configuration: string,
  call: () => Promise<unknown>,
): Promise<TrialCall[]> {
  try {
    await call();
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    const [text, what, webhook = ''] = BY_WEBHOOK.exec(error.message) ?? [];
    if (text !== undefined) return endedBy(webhook, what === 'failed calling' ? text : undefined, configuration);
    if (isForbidden(error) && describeForbidden(error) !== undefined) {
      reader.note(error);
      return [];
    }
    // the webhook or another check refused the object: the API server could call it
  }
  return [{ configuration }];
}

/** A webhook ended the request: it refused the object, or `failure` says why it could not be called. */
function endedBy(webhook: string, failure: string | undefined, configuration: string): TrialCall[] {
  const isOwn = webhook.endsWith(OWN_WEBHOOKS);
  if (failure !== undefined) {
    return [{ configuration: isOwn ? configuration : `of ${webhook}, which is not Holdfast's`, error: failure }];
  }
  // that of somebody else may have been first, so that nobody called ours
  return isOwn ? [{ configuration }] : [];
}

/** Asks which rights the processes lack; undefined if the user may not ask. */
export async function missingRightsOf(
  reader: ProbingReader,
  workloads: readonly InstalledWorkload[],
): Promise<ProcessRight[] | undefined> {
  const needed = workloads.flatMap((workload) => {
    const component = componentOf(workload);
    const account = `system:serviceaccount:${workload.metadata.namespace ?? ''}:holdfast-${component}`;
    return (NEEDED_RIGHTS[component] ?? []).map((right) => ({ account, ...right }));
  });
  try {
    const allowed = await Promise.all(needed.map((right) => isAllowed(reader, right)));
    return needed.filter((_, index) => !allowed[index]);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    reader.note(error);
    return undefined;
  }
}

async function isAllowed(
  { client }: ProbingReader,
  { account, verb, group, resource }: ProcessRight,
): Promise<boolean> {
  const [plural = '', subresource] = resource.split('/');
  const [, , namespace = ''] = account.split(':');
  const review = await client.create(SUBJECT_ACCESS_REVIEWS, {
    metadata: UNNAMED,
    spec: {
      user: account,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
      resourceAttributes: { verb, group, resource: plural, ...(subresource !== undefined && { subresource }) },
    },
  });
  return review.status?.allowed === true;
}
