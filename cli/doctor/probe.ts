import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { StatusError, isForbidden } from '../../kube/errors.js';
import { clusterResource } from '../../kube/resource.js';
import { ADDRESS_POOLS, PODS, SUBJECT_ACCESS_REVIEWS, type SubjectAccessReview } from '../../kube/resources.js';
import { describeForbidden } from '../forbidden.js';
import { type InstalledWorkload, componentOf } from '../installation.js';
import type { PermittedReader } from '../reader.js';

const SELF_SUBJECT_REVIEWS = clusterResource('authentication.k8s.io/v1', 'selfsubjectreviews', 'SelfSubjectReview');
const SELF_SUBJECT_ACCESS_REVIEWS = clusterResource<SubjectAccessReview>(
  'authorization.k8s.io/v1',
  'selfsubjectaccessreviews',
  'SelfSubjectAccessReview',
);
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

/** `resource` may have a subresource: `nodes/status`. */
export type Right = Omit<ProcessRight, 'account'>;

/** @param verbs of each resource, with spaces between them */
const rights = (group: string, verbs: string, ...resources: readonly string[]): Right[] =>
  resources.flatMap((resource) => verbs.split(' ').map((verb) => ({ verb, group, resource })));
const [OWN, CLAIMS, KUBEVIRT] = ['ipam.holdfast.dev', 'k8s.cni.cncf.io', 'kubevirt.io'] as const;
const [CONTROLLER, WEBHOOK, IPAM, GUEST] = [
  [
    ...rights(KUBEVIRT, 'list', 'virtualmachines', 'virtualmachineinstances'),
    ...rights(KUBEVIRT, 'update', 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
    ...rights(CLAIMS, 'list', 'network-attachment-definitions'),
    ...rights(CLAIMS, 'create patch delete', 'ipamclaims'),
    ...rights('', 'list', 'pods'),
  ],
  [
    ...rights(KUBEVIRT, 'list', 'virtualmachineinstances'),
    ...rights(CLAIMS, 'list', 'ipamclaims'),
    ...rights('', 'list', 'namespaces'),
  ],
  [
    ...rights(OWN, 'create patch delete', 'addresspools', 'addressleases'),
    ...rights(OWN, 'patch', 'addresspools/status'),
    ...rights(OWN, 'serve', 'addresspools'),
    ...rights(CLAIMS, 'patch', 'ipamclaims/status'),
    ...rights(CLAIMS, 'list', 'network-attachment-definitions'),
    ...rights('', 'list', 'pods'),
  ],
  [
    ...rights(KUBEVIRT, 'list', 'virtualmachineinstances'),
    ...rights(CLAIMS, 'patch', 'ipamclaims/status'),
    ...rights(OWN, 'patch', 'addressleases'),
    ...rights('', 'create patch', 'secrets'),
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
    ...rights(OWN, 'create patch', 'addressleases'),
    ...rights(OWN, 'list', 'addresspools'),
    ...rights(CLAIMS, 'list', 'network-attachment-definitions'),
  ],
  capacity: rights('', 'patch', 'nodes/status'),
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
  const pod = { metadata, spec: { containers: [{ name: 'none', image: 'none' }] } };
  return client.create<KubeObject>(PODS, pod, { dryRun: true });
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
    const allowed = await Promise.all(needed.map((right) => isAllowed(reader.client, right, right.account)));
    return needed.filter((_, index) => !allowed[index]);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    reader.note(error);
    return undefined;
  }
}

/** Whether a service account has a right in the whole cluster; without an account, whether the user has it. */
export async function isAllowed(
  client: Pick<Client, 'create'>,
  { verb, group, resource }: Right,
  account?: string,
): Promise<boolean> {
  const [plural = '', subresource] = resource.split('/');
  const [, , namespace = ''] = account?.split(':') ?? [];
  const groups = ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'];
  const resourceAttributes = { verb, group, resource: plural, ...(subresource !== undefined && { subresource }) };
  const spec = { ...(account !== undefined && { user: account, groups }), resourceAttributes };
  const kind = account === undefined ? SELF_SUBJECT_ACCESS_REVIEWS : SUBJECT_ACCESS_REVIEWS;
  const review = await client.create(kind, { metadata: UNNAMED, spec } as SubjectAccessReview);
  return review.status?.allowed === true;
}
