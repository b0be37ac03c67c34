import { SERVED_NETWORKS_COMPLETE, SERVED_NETWORKS_CONFIG_MAP } from '../../api/names.js';
import type { KubeVirt } from '../../api/kubevirt.js';
import { objectKey, byAge } from '../../api/meta.js';
import { expiryOf, splitPem } from '../../tls/pem.js';
import { PARAMETERS, type WebhookConfiguration, allocatesAddresses } from '../installation.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

const SOON_MS = 7 * 24 * 3_600_000;
/** The Service of an EndpointSlice. */
const SERVICE_LABEL = 'kubernetes.io/service-name';
/**
 * The policies, without the prefix of their names. `ipam`: about kinds and processes that an installation of only controller and webhook does not
 * have. A test compares them with the manifests.
 */
const POLICIES = {
  ipam: [
    ...['agent-blocks', 'agent-leases', 'capacity-nodes', 'lease-quarantine', 'pool-claim-status', 'pool-origin'],
    ...['network-data', 'network-data-locks', 'responder-leases', 'responder-sets', 'responder-tables'],
  ].map(withPrefix),
  claims: [
    ...['binding-networks', 'claim-guard', 'claim-reference', 'claim-status', 'launcher-creator', 'launcher-label'],
    ...['launcher-owner', 'status-networks', 'webhook-configurations', 'configmap-informer'],
  ].map(withPrefix),
};
export const POLICY_NAMES: readonly string[] = [...POLICIES.ipam, ...POLICIES.claims];

function withPrefix(name: string): string {
  return `holdfast-${name}`;
}

/** The names of the policies that the installation needs. */
export function neededPolicies(observed: ObservedCluster): readonly string[] {
  return allocatesAddresses(observed) ? POLICY_NAMES : POLICIES.claims;
}

/** Webhooks that the API server cannot call, or soon cannot. */
export function checkWebhooks(observed: ObservedCluster): Finding[] {
  const { configurations, trialCalls } = observed;
  const reach =
    'check that its pods are ready, and that the API server reaches them. For a certificate error, the log of the process says why caBundle is not current';
  const failed = trialCalls.flatMap(({ configuration, error }) => {
    const object = `WebhookConfiguration ${configuration}`;
    return error === undefined ? [] : [errorOf('webhooks', object, `the API server cannot call it: ${error}`, reach)];
  });
  if (configurations === undefined) return failed;
  const found = [...failed, ...configurations.flatMap((each) => checkConfiguration(each, observed))];
  if (configurations.some(({ metadata }) => metadata.name === 'holdfast-webhook')) return found;
  const problem = 'does not exist, so launcher pods get no reference to their claims';
  const remedy = 'apply manifests/base/claims/webhook/mutating-webhook.yaml';
  return [errorOf('webhooks', 'MutatingWebhookConfiguration holdfast-webhook', problem, remedy), ...found];
}

function checkConfiguration(configuration: WebhookConfiguration, observed: ObservedCluster): Finding[] {
  const object = `${configuration.kind ?? 'WebhookConfiguration'} ${configuration.metadata.name}`;
  const problems = (configuration.webhooks ?? []).flatMap(({ clientConfig, failurePolicy }) => {
    const service = clientConfig.service;
    const backend = service === undefined ? undefined : problemOfService(service, observed);
    const found = [problemOfAuthority(clientConfig.caBundle, observed.now), backend];
    return found.flatMap((problem) =>
      problem === undefined ? [] : [{ ...problem, isFatal: failurePolicy !== 'Ignore' }],
    );
  });
  const distinct = new Map(problems.map((problem) => [problem.problem, problem]));
  return [...distinct.values()].map(({ problem, remedy, isSoon, isFatal }) =>
    (isFatal && !isSoon ? errorOf : warningOf)('webhooks', object, problem, remedy),
  );
}

interface WebhookProblem {
  readonly problem: string;
  readonly remedy: string;
  readonly isSoon: boolean;
}

function problemOfAuthority(caBundle: string | undefined, now: number | undefined): WebhookProblem | undefined {
  const remedy =
    'the process that serves it writes caBundle, unless it is configured with a certificate: check that it is ready and see its log';
  const all = splitPem(Buffer.from(caBundle ?? '', 'base64').toString('utf8'));
  const ends = all.flatMap((pem) => expiryOf(pem) ?? []);
  if (all.length === 0 || ends.length < all.length)
    return { problem: 'caBundle is empty, or not a certificate', remedy, isSoon: false };
  if (now === undefined) return undefined;
  const last = Math.max(...ends);
  const date = new Date(last).toISOString();
  if (last <= now) return { problem: `the CA in caBundle expired at ${date}`, remedy, isSoon: false };
  return last - now < SOON_MS ? { problem: `the CA in caBundle expires at ${date}`, remedy, isSoon: true } : undefined;
}

function problemOfService(
  { namespace, name }: { namespace: string; name: string },
  { endpointSlices }: ObservedCluster,
): WebhookProblem | undefined {
  if (endpointSlices === undefined) return undefined;
  const ready = endpointSlices
    .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[SERVICE_LABEL] === name)
    .flatMap(({ endpoints }) => endpoints ?? [])
    .some(({ conditions }) => conditions?.ready !== false);
  if (ready) return undefined;
  return {
    problem: `its Service ${namespace}/${name} has no ready pod`,
    remedy: `check the pods of ${name}, and that the Service selects them`,
    isSoon: false,
  };
}

/** Policies that are missing or do not fit, and parameters that differ from the cluster. */
export function checkPolicies(observed: ObservedCluster): Finding[] {
  const { policies, policyBindings, parameters, kubevirts } = observed;
  const apply = 'apply manifests/crds and manifests/base/*/policies';
  const findMissing = (kind: string, objects: typeof policyBindings) =>
    objects === undefined
      ? []
      : neededPolicies(observed)
          .filter((name) => !objects.some(({ metadata }) => metadata.name === name))
          .map((name) => errorOf('policies', `${kind} ${name}`, 'does not exist', apply));
  return [
    ...findMissing('ValidatingAdmissionPolicy', policies),
    ...findMissing('ValidatingAdmissionPolicyBinding', policyBindings),
    ...checkParameters(parameters, kubevirts),
    ...(allocatesAddresses(observed) ? checkServedNetworks(observed) : []),
  ];
}

function checkServedNetworks({ servedNetworks }: ObservedCluster): Finding[] {
  if (servedNetworks === undefined || servedNetworks?.[SERVED_NETWORKS_COMPLETE] !== undefined) return [];
  const [problem, remedy] =
    servedNetworks === null
      ? ['does not exist, so no claim gets addresses', 'apply manifests/base/ipam/policies/served-networks.yaml']
      : [
          'is not complete, so no claim of another IPAM gets addresses',
          'check that ipam has a leader, and see its log',
        ];
  return [errorOf('policies', `ConfigMap ${SERVED_NETWORKS_CONFIG_MAP}`, problem, remedy)];
}

/** Returns the KubeVirt object that the processes take for the installed one. */
export function oldestKubeVirt(kubevirts: readonly KubeVirt[]): KubeVirt | undefined {
  return kubevirts.toSorted(byAge)[0];
}

function checkParameters(
  parameters: ObservedCluster['parameters'],
  kubevirts: ObservedCluster['kubevirts'],
): Finding[] {
  const object = `ConfigMap ${PARAMETERS}`;
  const oldest = oldestKubeVirt(kubevirts ?? []);
  if (parameters === null) {
    const remedy = 'apply manifests/base/claims/policies/parameters.yaml, with your values';
    return [errorOf('policies', object, 'does not exist, so no pod gets the address of a claim', remedy)];
  }
  if (kubevirts === undefined) return [];
  if (oldest === undefined)
    return [warningOf('kubevirt', 'KubeVirt', 'the cluster has no KubeVirt object', 'install KubeVirt')];
  if (parameters === undefined) return [];
  const { kubevirtNamespace = '' } = parameters;
  if (kubevirtNamespace === oldest.metadata.namespace) return [];
  const problem = `kubevirtNamespace is "${kubevirtNamespace}", but KubeVirt ${objectKey(oldest)} is in another namespace: no pod gets the address of a claim`;
  return [errorOf('kubevirt', object, problem, `set kubevirtNamespace to ${oldest.metadata.namespace ?? ''}`)];
}
