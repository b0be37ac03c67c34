import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { COMPONENT_LABEL, type Pod } from '../../api/pod.js';
import { createAll, resourceOf } from '../../bed/control-plane/objects.js';
import { clusterRoleBindingOf, requestToken, SERVICE_ACCOUNTS } from '../../bed/control-plane/service-accounts.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { readInstallation } from '../../bed/holdfast/manifests.js';
import { untilValue } from '../../bed/processes/wait.js';
import { waitHoldfast } from '../../bed/real-nodes/real-cluster.js';
import { LauncherCreator } from '../../bed/story/vms/launcher-creator.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { messageOf } from '../../kube/errors.js';
import { namespacedResource } from '../../kube/resource.js';
import {
  ADDRESS_POOLS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  PODS,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../../kube/resources.js';
import { ROOT } from '../../test/source-files.js';
import {
  certificateOf,
  ELECTED,
  holdfastPods,
  leaderOf,
  OF_HOLDFAST,
} from '../../bed/story/real-nodes/component-pods.js';
import { rightsOf, tokenBindingOf } from '../../bed/story/real-nodes/container-process.js';

const NO_CAPABILITIES = '0000000000000000';
const FILTER = 2;

interface Budget extends KubeObject {
  readonly status?: Readonly<Record<string, unknown>>;
}

const BUDGETS = namespacedResource<Budget>('policy/v1', 'poddisruptionbudgets', 'PodDisruptionBudget');
const NETWORK_POLICIES = namespacedResource('networking.k8s.io/v1', 'networkpolicies', 'NetworkPolicy');

describeOnNodes('The shipped manifests on real nodes', (story, nodes) => {
  it('run pods that are ready, never restarted, and have no rights on their nodes', async () => {
    const pods = await holdfastPods(story().client);
    expect(pods).to.have.length(2 * 5 + nodes().names.length);
    for (const pod of pods) {
      const { name } = pod.metadata;
      const node = nodes().node(pod.spec?.nodeName);
      const isAgent = pod.metadata.labels?.[COMPONENT_LABEL] === 'agent';
      expect(restartsOf(pod), name).to.equal(0);
      expect(await rightsOf(node, pod), name).to.deep.equal({
        ...(isAgent ? { user: 0, group: 0 } : { user: 1000, group: 1000 }),
        capabilities: [NO_CAPABILITIES, NO_CAPABILITIES],
        ...{ noNewPrivileges: true, seccomp: FILTER, isRootReadOnly: true },
      });
      const { pod: bound, node: there } = (await tokenBindingOf(node, pod)) ?? {};
      expect({ bound, there: there?.name }).to.deep.equal({
        bound: { name, uid: pod.metadata.uid },
        there: pod.spec?.nodeName,
      });
      for (const path of ['healthz', 'readyz'])
        expect((await fetch(`http://${pod.status?.podIP ?? ''}:8081/${path}`)).status, `${name} ${path}`).to.equal(200);
    }
  });

  it('install the plugin of the image on each node, executable for the runtime and writable for root alone', async () => {
    const [architecture] = [process.arch === 'x64' ? 'amd64' : process.arch];
    const shipped = await readFile(join(ROOT, 'dist', 'cni', `holdfast-linux-${architecture}`));
    for (const name of nodes().names) {
      const path = nodes().node(name).disk('opt/cni/bin/holdfast');
      expect(shipped.equals(await readFile(path)), name).to.equal(true);
      const { mode, uid, gid } = await stat(path);
      expect({ mode: (mode & 0o7777).toString(8), uid, gid }, name).to.deep.equal({ mode: '755', uid: 0, gid: 0 });
    }
  });

  it('have budgets that let one pod of each component be evicted, and network policies, which nothing enforces here', async () => {
    const installed = await readInstallation();
    const namesOf = (kind: string) =>
      installed
        .filter((one) => one.kind === kind)
        .map(({ metadata }) => metadata.name)
        .sort();
    const { items: budgets } = await story().client.list(BUDGETS, { namespace: HOLDFAST_NAMESPACE });
    expect(budgets.map(({ metadata }) => metadata.name).sort()).to.deep.equal(namesOf('PodDisruptionBudget'));
    const wanted = { currentHealthy: 2, desiredHealthy: 1, disruptionsAllowed: 1, expectedPods: 2 };
    for (const { metadata } of budgets) {
      // the controller counts pods some time after they are ready
      await untilValue(
        `budget ${metadata.name} to count ${JSON.stringify(wanted)}`,
        async () => (await story().client.get(BUDGETS, { namespace: HOLDFAST_NAMESPACE, name: metadata.name })).status,
        (status = {}) => Object.entries(wanted).every(([key, count]) => status[key] === count),
      );
    }
    const { items: policies } = await story().client.list(NETWORK_POLICIES, { labelSelector: OF_HOLDFAST });
    expect(policies.map(({ metadata }) => metadata.name).sort()).to.deep.equal(namesOf('NetworkPolicy'));
  });

  it('serve admission with one certificate from both replicas, issued by the CA of the webhook configuration', async () => {
    const { client } = story();
    const [mutating, validating] = [
      await client.get(MUTATING_WEBHOOK_CONFIGURATIONS, { name: 'holdfast-webhook' }),
      await client.get(VALIDATING_WEBHOOK_CONFIGURATIONS, { name: 'holdfast-ipam' }),
    ];
    const served = [
      { component: 'webhook', port: 9443, configuration: mutating },
      { component: 'ipam', port: 9444, configuration: validating },
    ];
    for (const { component, port, configuration } of served) {
      const ca = Buffer.from(configuration.webhooks?.[0]?.clientConfig.caBundle ?? '', 'base64').toString();
      const servername = `holdfast-${component}.${HOLDFAST_NAMESPACE}.svc`;
      const pods = await holdfastPods(client, component);
      const fingerprints = await Promise.all(pods.map((pod) => certificateOf(pod, port, { ca, servername })));
      expect(fingerprints, component).to.have.length(2);
      expect(new Set(fingerprints).size, component).to.equal(1);
    }
  });

  it('have one leader of each component, and another one serves new VMs after its pod is deleted', async () => {
    const { client } = story();
    await nodes().createNetwork('blue', ['10.83.0.0/28']);
    await asScraper(async (token) => {
      const before = await Promise.all(ELECTED.map((component) => leaderOf(client, component, token)));
      await Promise.all(before.map((name) => client.delete(PODS, { namespace: HOLDFAST_NAMESPACE, name })));
      await story().runVm('web', { data: 'blue' });
      await story().addresses.waitForIPs('web.data');
      await Promise.all(ELECTED.map((component, index) => leaderOf(client, component, token, before[index])));
      await waitHoldfast(nodes().cluster);
    });
  });

  it('refuse no launcher, no pool and no VM while all pods are replaced by a rolling restart', async () => {
    const { client, namespace } = story();
    await nodes().createNetwork('blue', ['10.84.0.0/28']);
    await story().runVm('before', { data: 'blue' });
    const [launcher] = await story().launchers('before');
    const creator = await LauncherCreator.connect(nodes().cluster);
    const pool = { metadata: { name: namespace }, spec: { network: namespace, subnets: [{ cidr: '192.0.2.0/30' }] } };
    const refusals: string[] = [];
    const counts = { launchers: 0, pools: 0 };
    const stopped = new AbortController();
    const repeat = async (kind: keyof typeof counts, request: () => Promise<unknown>) => {
      while (!stopped.signal.aborted) {
        await request().catch((error: unknown) => refusals.push(messageOf(error)));
        counts[kind]++;
      }
    };
    const load = [
      repeat('launchers', () => creator.admitCopy(launcher!)),
      repeat('pools', () => client.create(ADDRESS_POOLS, pool, { dryRun: true })),
    ];
    try {
      const kubectl = await story().kubectl();
      await kubectl.succeed(['-n', HOLDFAST_NAMESPACE, 'rollout', 'restart', 'deployment']);
      await story().runVm('meanwhile', { data: 'blue' });
      await waitHoldfast(nodes().cluster);
      await untilValue(
        'the old pods to be gone',
        () => holdfastPods(client),
        (pods) => pods.length === 2 * 5 + nodes().names.length,
      );
    } finally {
      stopped.abort();
      await Promise.all(load);
      await creator.close();
    }
    expect(refusals).to.deep.equal([]);
    expect(counts.launchers).to.be.greaterThan(50);
    expect(counts.pools).to.be.greaterThan(50);
  });

  /** Runs a test with the token of a service account that may read metrics. */
  async function asScraper(test: (token: string) => Promise<void>): Promise<void> {
    const account = story().ref('scraper');
    const binding = clusterRoleBindingOf(account, 'holdfast-metrics-reader', story().namespace);
    await story().client.create(SERVICE_ACCOUNTS, { metadata: account });
    await createAll(story().client, [binding]);
    try {
      await test(await requestToken(story().client, account));
    } finally {
      await story().client.delete(resourceOf(binding), binding.metadata);
    }
  }
});

function restartsOf(pod: Pod): number {
  const { containerStatuses = [], initContainerStatuses = [] } = pod.status as Record<
    string,
    { restartCount: number }[] | undefined
  >;
  return [...containerStatuses, ...initContainerStatuses].reduce((sum, { restartCount }) => sum + restartCount, 0);
}
