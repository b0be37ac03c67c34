import { join } from 'node:path';
import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { POLICIES_CONFIG_MAP, SERVED_NETWORKS_CONFIG_MAP } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { type Manifest, readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import type { TokenBinding } from '../../bed/control-plane/service-accounts.js';
import { MANIFESTS, readInstallation } from '../../bed/holdfast/manifests.js';
import { clientAs } from '../../bed/story/users/service-account.js';
import { until } from '../../bed/processes/wait.js';
import { listServedNetworks } from '../../ipam/pools/served-networks.js';
import { Client } from '../../kube/client.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { isForbidden, messageOf } from '../../kube/errors.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, CONFIG_MAPS, IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { type Resource, clusterResource, namespacedResource } from '../../kube/resource.js';
import { Transport } from '../../kube/transport/transport.js';
import { SharedServer } from './shared-server.js';

/** All kinds except workloads, because nothing runs in this cluster. */
const INSTALLED_KINDS =
  /^(Namespace|CustomResourceDefinition|ConfigMap|ServiceAccount|(Cluster)?Role(Binding)?|ValidatingAdmissionPolicy.*)$/;
const NAMESPACE = 'default';
const SYSTEM = 'holdfast-system';
/** A group with all rights that the API server knows, so that only policies deny its requests. */
const GROUP = 'testers';
/** All but those that only policies of Holdfast check. */
const VERBS = ['get', 'list', 'watch', 'create', 'update', 'patch', 'delete', 'deletecollection'];
const NODE_OF_TOKEN = 'impersonate-extra-authentication.kubernetes.io%2fnode-name';

const DEFAULT_PARAMETERS: Record<string, string> = { kubevirtNamespace: 'kubevirt' };

/** A kube-apiserver with the shipped admission policies, and clients that impersonate any user. */
export class PolicyCluster {
  /** The client of a cluster administrator. */
  readonly admin: Client;
  readonly #plane: ControlPlane;
  readonly #clients = new Map<string, Client>();
  #count = 0;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.admin = plane.client;
  }

  /** The path of a cluster administrator's kubeconfig. */
  get kubeconfig(): string {
    return this.#plane.kubeconfig;
  }

  async close(): Promise<void> {
    for (const client of this.#clients.values()) await client.transport.close();
  }

  /**
   * Returns a client of a user with all rights by RBAC.
   * @param node the node in the user's token, as in a token that is bound to a node or pod
   */
  as(user: string, node?: string): Promise<Client> {
    const extra = node === undefined ? {} : { [NODE_OF_TOKEN]: node };
    return this.#clientOf(user, { 'impersonate-group': GROUP, ...extra });
  }

  /** Returns a client of an existing service account, with a token like that of its process. */
  async withToken(account: { namespace: string; name: string }, binding?: TokenBinding): Promise<Client> {
    const client = await clientAs({ client: this.admin, kubeconfig: this.#plane.kubeconfig }, account, binding);
    this.#clients.set(JSON.stringify([account, binding]), client);
    return client;
  }

  /** Returns a client with the rights that RBAC grants to the user by name or as a service account. */
  asRestricted(user: string): Promise<Client> {
    return this.#clientOf(user, {});
  }

  async #clientOf(user: string, groups: Record<string, string>): Promise<Client> {
    const key = JSON.stringify([user, groups]);
    const known = this.#clients.get(key);
    if (known !== undefined) return known;
    const admin = await loadCredentials({ kubeconfig: this.#plane.kubeconfig });
    const headers = async () => ({ ...(await admin.headers()), 'impersonate-user': user, ...groups });
    const { server } = admin;
    const client = new Client(
      new Transport({ server, headers, tls: () => admin.tls(), refresh: () => admin.refresh() }),
    );
    this.#clients.set(key, client);
    return client;
  }

  async createPod(user: string, metadata: Partial<ObjectMeta>): Promise<Pod> {
    const spec = { containers: [{ name: 'c', image: 'registry.test/c' }] };
    return (await this.as(user)).create(PODS, { metadata: this.#named(metadata), spec } as Pod);
  }

  async patchPod(user: string, pod: Pod, body: object, subresource?: string): Promise<Pod> {
    const ref = { namespace: NAMESPACE, name: pod.metadata.name };
    const client = await this.as(user);
    return client.patch(PODS, ref, { type: 'merge', body }, subresource === undefined ? {} : { subresource });
  }

  /** Calls `act` while one policy is not active, to create an object that is older than the policy. */
  async withoutPolicy<T>(binding: string, act: () => Promise<T>): Promise<T> {
    const { metadata, ...rest } = await this.admin.get(POLICY_BINDINGS, { name: binding });
    await this.admin.delete(POLICY_BINDINGS, { name: binding });
    try {
      return await until('the policy is not in force', act);
    } finally {
      await this.admin.create(POLICY_BINDINGS, { ...rest, metadata: { name: metadata.name } });
    }
  }

  /** Replaces the data of the policies' ConfigMap. */
  async setParameters(data: Record<string, string>): Promise<void> {
    const ref = { namespace: SYSTEM, name: POLICIES_CONFIG_MAP };
    await this.admin.patch(CONFIG_MAPS, ref, { type: 'json', operations: [{ op: 'add', path: '/data', value: data }] });
  }

  /** Waits until the policies know the ConfigMaps that they read as they are now. */
  async untilParametersAreKnown(): Promise<void> {
    for (const name of [POLICIES_CONFIG_MAP, SERVED_NETWORKS_CONFIG_MAP]) {
      const { data = {} } = await this.admin.get(CONFIG_MAPS, { namespace: SYSTEM, name });
      const copy = (more: object = {}) =>
        this.admin.create(
          CONFIG_MAPS,
          { metadata: { name, namespace: NAMESPACE }, data: { ...data, ...more } },
          { dryRun: true },
        );
      await untilDenied(() => copy({ another: 'x' }));
      await until(`the policies know ${name}`, () => copy());
    }
  }

  /** Lists the networks of all pools as ipam does, by its right. */
  async listNetworks(): Promise<void> {
    const { items } = await this.admin.list(ADDRESS_POOLS);
    const ref = { namespace: SYSTEM, name: SERVED_NETWORKS_CONFIG_MAP };
    const ipam = await this.asRestricted('system:serviceaccount:holdfast-system:holdfast-ipam');
    await ipam.patch(CONFIG_MAPS, ref, { type: 'merge', body: { data: listServedNetworks(items) } });
  }

  /** Binds a pod by the subresource that schedulers use. */
  async bindPod(user: string, pod: Pod, metadata: object): Promise<void> {
    const ref = { namespace: NAMESPACE, name: pod.metadata.name };
    const client = await this.as(user);
    await client.createSubresource(PODS, ref, 'binding', bindingOf(pod, metadata));
  }

  /** Binds a pod by the old API without subresource, which is still served. */
  async bindPodWithoutSubresource(user: string, pod: Pod, metadata: object): Promise<void> {
    await (await this.as(user)).create(BINDINGS, bindingOf(pod, metadata));
  }

  async createClaim(user: string, metadata: Partial<ObjectMeta>): Promise<IPAMClaim> {
    const spec = { network: 'blue', interface: 'net1' };
    return (await this.as(user)).create(IPAM_CLAIMS, { metadata: this.#named(metadata), spec });
  }

  async patchClaim(user: string, claim: IPAMClaim, body: object, subresource?: string): Promise<IPAMClaim> {
    const ref = { namespace: NAMESPACE, name: claim.metadata.name };
    const client = await this.as(user);
    return client.patch(IPAM_CLAIMS, ref, { type: 'merge', body }, subresource === undefined ? {} : { subresource });
  }

  #named(metadata: Partial<ObjectMeta>): ObjectMeta {
    this.#count += 1;
    return { ...metadata, name: `object-${this.#count}`, namespace: NAMESPACE };
  }
}

const POLICY_BINDINGS = clusterResource(
  'admissionregistration.k8s.io/v1',
  'validatingadmissionpolicybindings',
  'ValidatingAdmissionPolicyBinding',
);
const BINDINGS = namespacedResource('v1', 'bindings', 'Binding');

/** A policy for copies of the ConfigMaps in another namespace: it admits them as the policies of Holdfast read the originals. */
const COPIES_ONLY: Manifest[] = [
  {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'copies' },
    spec: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'], operations: ['CREATE'] }],
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } },
      },
      validations: [
        {
          expression:
            'object.metadata.name != params.metadata.name || object.?data.orValue({}) == params.?data.orValue({})',
        },
      ],
    },
  },
  ...[POLICIES_CONFIG_MAP, SERVED_NETWORKS_CONFIG_MAP].map((name) => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: `copies-of-${name}` },
    spec: {
      policyName: 'copies',
      validationActions: ['Deny'],
      paramRef: { name, namespace: SYSTEM, parameterNotFoundAction: 'Deny' },
    },
  })),
];

function bindingOf(pod: Pod, metadata: object): KubeObject {
  const { name, namespace } = pod.metadata;
  const target = { apiVersion: 'v1', kind: 'Node', name: 'node-1' };
  return { apiVersion: 'v1', kind: 'Binding', metadata: { ...metadata, name, namespace }, target } as KubeObject;
}

const SERVER = new SharedServer(async ({ client }) => {
  const rbac = 'rbac.authorization.k8s.io';
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: NAMESPACE } };
  const role = {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name: GROUP },
    rules: [{ apiGroups: ['*'], resources: ['*'], verbs: VERBS }],
  };
  const rights = {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: GROUP },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: GROUP },
    subjects: [{ apiGroup: rbac, kind: 'Group', name: GROUP }],
  };
  const crds = await readManifests(join(MANIFESTS, 'crds', 'ipamclaims.yaml'));
  const shipped = (await readInstallation()).filter(({ kind }) => INSTALLED_KINDS.test(kind));
  const dataOf: Record<string, object> = {
    [POLICIES_CONFIG_MAP]: DEFAULT_PARAMETERS,
    [SERVED_NETWORKS_CONFIG_MAP]: listServedNetworks([]),
  };
  for (const object of [account, role, rights, ...crds, ...shipped, ...COPIES_ONLY]) {
    const data = object.kind === 'ConfigMap' ? { data: dataOf[object.metadata.name] } : {};
    await client.create(resourceOf(object), { ...object, ...data });
  }
  for (const kind of [IPAM_CLAIMS, ADDRESS_POOLS, ADDRESS_LEASES] as Resource[]) {
    await until(`${kind.plural} are served`, () => client.list(kind));
  }
});

/** Prepares a cluster before the tests of a suite. @param parameters data of the policies' ConfigMap */
export function usePolicyCluster(
  suite: Mocha.Suite,
  setUp: (cluster: PolicyCluster) => Promise<void>,
  parameters = DEFAULT_PARAMETERS,
): void {
  let cluster: PolicyCluster | undefined;
  suite.timeout(20_000);
  SERVER.use(suite, async (plane) => {
    cluster = new PolicyCluster(plane);
    await cluster.setParameters(parameters);
    await cluster.untilParametersAreKnown();
    await setUp(cluster);
  });
  after(() => cluster?.close());
}

/** @returns the message of a policy; undefined if the attempt succeeded */
async function policyMessageOf(attempt: Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt;
    return undefined;
  } catch (error) {
    if (isForbidden(error) || messageOf(error).includes('ValidatingAdmissionPolicy')) return messageOf(error);
    throw error;
  }
}

/** Waits until a policy denies the attempt, because policies become active some time after their creation. */
export async function untilDenied(attempt: () => Promise<unknown>): Promise<string> {
  return until('the policy is in force', () => policyMessageOf(attempt()));
}

/** @param expected part of the message; undefined if the attempt must succeed */
export async function expectDenial(attempt: Promise<unknown>, expected: string | undefined): Promise<void> {
  const words = await policyMessageOf(attempt);
  if (expected === undefined) expect(words).to.equal(undefined);
  else expect(words ?? 'nothing was refused').to.include(expected);
}
