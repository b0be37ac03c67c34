import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import {
  CAPACITY_ENABLED,
  CAPACITY_LABEL,
  LAUNCHER_LABEL,
  LAUNCHER_LABEL_VALUE,
  NETWORKS_ANNOTATION,
} from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import {
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  KUBEVIRTS,
  MUTATING_WEBHOOK_CONFIGURATIONS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  SECRETS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { WEBHOOK_SETTINGS, type WebhookConfig } from '../../process/config/config.js';
import {
  NAMESPACE,
  makeClaim,
  makeLauncherPod,
  makeNad,
  makeVm,
  makeVmi,
  networksValue,
} from '../../test/objects/kubevirt-objects.js';
import { requestErrorOf } from '../../test/request-error.js';
import { createWebhook } from '../../webhook/main.js';
import { type ControlPlane, startControlPlane } from '../../bed/control-plane/control-plane.js';
import { createCrds, kubeVirtKind } from '../../bed/control-plane/crds.js';
import { createAll, readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import { clusterRoleBindingOf } from '../../bed/control-plane/service-accounts.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import { until } from '../../bed/processes/wait.js';
import { endpointOf, withoutSelector } from '../../bed/holdfast/install.js';
import { identifyApiServer } from './api-server-identity.js';
import { type RunningComponent, startComponent, stopComponent } from './running-component.js';
import { creationReview, reviewAgent, sendReview } from '../../bed/holdfast/review.js';
import { serviceAccountClient } from '../../bed/story/users/service-account.js';

const MANIFESTS = join(import.meta.dirname, '..', '..', 'manifests');
const SYSTEM = 'holdfast-system';
const NAME = 'holdfast-webhook';
const KUBEVIRT_CONTROLLER = { namespace: 'kubevirt', name: 'kubevirt-controller' };

describe('The webhook with a real API server', () => {
  let folder: string;
  let plane: ControlPlane;
  let port: number;
  let running: RunningComponent | undefined;
  let vmi: VirtualMachineInstance;
  /** KubeVirt's controller, because only its launchers get references to claims. */
  let kubevirt: Client;

  before(async function () {
    this.timeout(15 * 60_000); // the first run builds the API server
    folder = await mkdtemp(join(tmpdir(), 'holdfast-webhook-'));
    plane = await startControlPlane({ apiServerFlags: await identifyApiServer(folder, `${NAME}.${SYSTEM}.svc`) });
    [port = 0] = await findFreePorts(1);
    await createCrds(plane.client, [
      kubeVirtKind('virtualmachines', 'VirtualMachine'),
      kubeVirtKind('virtualmachineinstances', 'VirtualMachineInstance'),
      kubeVirtKind('kubevirts', 'KubeVirt'),
    ]);
    await install();
    await plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, makeNad('blue'));
    const vm = await plane.client.create(VIRTUAL_MACHINES, makeVm('vm1'));
    const { uid = '' } = vm.metadata; // the API server's own
    vmi = await plane.client.create(VIRTUAL_MACHINE_INSTANCES, makeVmi('vm1', { data: 'blue' }, { vm: uid }));
    const claim = makeClaim('vm1', 'data', { ownerUid: uid });
    delete claim.metadata.resourceVersion; // it is to be created
    await plane.client.create(IPAM_CLAIMS, claim);
    running = await start();
  });

  after(async () => {
    await stop();
    await kubevirt.transport.close();
    await plane.stop();
    await rm(folder, { recursive: true });
  });

  async function install(): Promise<void> {
    const namespace = await readManifests(join(MANIFESTS, 'base', 'claims', 'namespace.yaml'));
    await createAll(plane.client, namespace);
    for (const name of [NAMESPACE, KUBEVIRT_CONTROLLER.namespace])
      await plane.client.create(NAMESPACES, { metadata: { name } });
    await plane.client.create(KUBEVIRTS, { metadata: { namespace: KUBEVIRT_CONTROLLER.namespace, name: 'kubevirt' } });
    await createAll(plane.client, [clusterRoleBindingOf(KUBEVIRT_CONTROLLER, 'cluster-admin')]);
    kubevirt = await serviceAccountClient(plane, KUBEVIRT_CONTROLLER);
    const webhooks = ['base/claims/webhook/mutating-webhook.yaml', 'base/capacity/mutating-webhook.yaml'];
    const files = [
      'crds/addresspools.yaml',
      'base/claims/rbac/webhook.yaml',
      'base/claims/rbac/policies.yaml',
      'base/claims/policies/parameters.yaml',
      'base/claims/webhook/secret.yaml',
      'base/claims/webhook/service.yaml',
      ...webhooks,
    ];
    const shipped = (await Promise.all(files.map((file) => readManifests(join(MANIFESTS, file))))).flat();
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace: NAMESPACE } };
    for (const object of [...shipped.map(withoutSelector), account, endpointOf(NAME, port)])
      await plane.client.create(resourceOf(object), object);
  }

  function start(): Promise<RunningComponent> {
    return startComponent<WebhookConfig>(plane, {
      process: 'webhook',
      settings: WEBHOOK_SETTINGS,
      changes: {
        webhookBindAddress: `127.0.0.1:${port}`,
        clientCaFile: join(folder, 'ca.crt'),
        clientAllowedNames: ['kube-apiserver'],
      },
      create: createWebhook,
    });
  }

  async function stop(): Promise<void> {
    if (running !== undefined) await stopComponent(running);
    running = undefined;
  }

  async function createLauncher(change: (pod: Pod) => void = () => undefined, dryRun = false): Promise<Pod> {
    const spec = { containers: [{ name: 'compute', image: 'registry.example/compute' }] };
    const pod = { ...makeLauncherPod(vmi), spec } as unknown as Pod;
    change(pod);
    return kubevirt.create(PODS, pod, { dryRun });
  }

  function networks(pod: Pod): string | undefined {
    return pod.metadata.annotations?.[NETWORKS_ANNOTATION];
  }

  async function patch(pod: Pod, metadata: object): Promise<Pod> {
    const { name, namespace } = pod.metadata;
    return kubevirt.patch(PODS, { name, namespace }, { type: 'merge', body: { metadata } });
  }

  const pointed = () => networksValue(vmi, { data: 'vm1.data' });

  it('creates its certificate and sets the caBundle, with only its shipped rights', async () => {
    const secret = await plane.client.get(SECRETS, { namespace: SYSTEM, name: `${NAME}-tls` });
    const { webhooks = [] } = await plane.client.get(MUTATING_WEBHOOK_CONFIGURATIONS, { name: NAME });
    const bundle = secret.data?.['ca.crt'];
    expect(webhooks.map(({ clientConfig }) => clientConfig.caBundle)).to.deep.equal([bundle, bundle]);
  });

  it('sets the claim reference on a launcher, also in a dry run', async () => {
    expect(networks(await createLauncher())).to.equal(pointed());
    expect(networks(await createLauncher(undefined, true))).to.equal(pointed());
  });

  it('adds capacity requests to pods in namespaces that opted in, but never to launchers with a claim', async () => {
    const config = JSON.stringify({ cniVersion: '1.0.0', name: 'net', type: 'bridge', ipam: { type: 'holdfast' } });
    const nad = { metadata: { name: 'pods', namespace: NAMESPACE }, spec: { config } };
    await plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, nad);
    const spec = { network: 'net', subnets: [{ cidr: '10.0.0.0/24' }], publishCapacity: true };
    await until('pools are served', () => plane.client.create(ADDRESS_POOLS, { metadata: { name: 'net' }, spec }));
    const plain = () =>
      createLauncher((pod) => {
        pod.metadata = {
          generateName: 'pod-',
          namespace: NAMESPACE,
          annotations: { [NETWORKS_ANNOTATION]: 'pods' },
        } as never;
      });
    expect(JSON.stringify(await plain())).not.to.include('ipam.holdfast.dev/net');
    const wanted = { metadata: { labels: { [CAPACITY_LABEL]: CAPACITY_ENABLED } } };
    await plane.client.patch(NAMESPACES, { name: NAMESPACE }, { type: 'merge', body: wanted });
    const asks = '"resources":{"limits":{"ipam.holdfast.dev/net":"1"},"requests":{"ipam.holdfast.dev/net":"1"}}';
    await until('pods ask', async () => JSON.stringify(await plain()).includes(asks));
    const launcher = await createLauncher();
    expect(networks(launcher)).to.equal(pointed());
    expect(JSON.stringify(launcher)).not.to.include('ipam.holdfast.dev/');
    await stop();
    expect(JSON.stringify(await plain())).not.to.include('ipam.holdfast.dev/net');
    running = await start();
  });

  it('answers only clients with a certificate of its CA', async () => {
    const review = creationReview(await createLauncher(undefined, true), 'review-1');
    const agent = reviewAgent(1);
    const failure: unknown = await sendReview(port, review, agent).catch((error: unknown) => error);
    expect(String(failure)).to.match(/certificate required|handshake failure|ECONNRESET|EPIPE|other side closed/i);
    await agent.close();
  });

  it('adds again the references that KubeVirt removes, so that nothing is written', async () => {
    const pod = await createLauncher();
    const stripped = await patch(pod, { annotations: { [NETWORKS_ANNOTATION]: networksValue(vmi) } });
    expect(networks(stripped)).to.equal(pointed());
    expect(stripped.metadata.resourceVersion).to.equal(pod.metadata.resourceVersion);
  });

  it('rejects a pod that only looks like a launcher', async () => {
    const refusal = await requestErrorOf(createLauncher((pod) => delete pod.metadata.ownerReferences));
    expect(refusal.message)
      .to.include('launcher-pods.ipam.holdfast.dev')
      .and.to.include('no VirtualMachineInstance controls it');
  });

  it('rejects another claim reference on a running launcher', async () => {
    const pod = await createLauncher();
    const foreign = networksValue(vmi, { data: 'vm2.data' });
    const refusal = await requestErrorOf(patch(pod, { annotations: { [NETWORKS_ANNOTATION]: foreign } }));
    expect(refusal.message).to.include('"vm2.data"').and.to.include('expected "vm1.data"');
  });

  it('rejects an annotation with 3,000 elements quickly, and admits other launchers meanwhile', async () => {
    const pod = await createLauncher();
    const elements = Array.from({ length: 3_000 }, (_, n) => ({ name: `n${n}` }));
    const change = { annotations: { [NETWORKS_ANNOTATION]: JSON.stringify(elements) } };
    const attacks = Array.from({ length: 20 }, () => requestErrorOf(patch(pod, change)));
    expect(networks(await createLauncher())).to.equal(pointed());
    for (const refusal of await Promise.all(attacks)) expect(refusal.message).to.include('more than 64 elements');
  });

  it('rejects the labels of a launcher on a pod that references a claim of another owner', async () => {
    const foreign = networksValue(vmi, { data: 'vm2.data' });
    const pod = await createLauncher(({ metadata }) => {
      metadata.labels = {};
      metadata.annotations = { [NETWORKS_ANNOTATION]: foreign };
    });
    const refusal = await requestErrorOf(patch(pod, { labels: { [LAUNCHER_LABEL]: LAUNCHER_LABEL_VALUE } }));
    expect(refusal.message).to.include('"vm2.data"').and.to.include('expected "vm1.data"');
  });

  it('restores its caBundle after it was removed', async () => {
    const operations = [{ op: 'remove' as const, path: '/webhooks/0/clientConfig/caBundle' }];
    await plane.client.patch(MUTATING_WEBHOOK_CONFIGURATIONS, { name: NAME }, { type: 'json', operations });
    await until('launchers are admitted', async () => networks(await createLauncher(undefined, true)) === pointed());
  });

  it('is called only for the networks of launchers', async () => {
    const launcher = await createLauncher();
    await stop();
    await patch(launcher, { labels: { some: 'label' }, annotations: { 'k8s.v1.cni.cncf.io/network-status': '[]' } });
    const plain = await createLauncher((pod) => (pod.metadata.labels = {}));
    expect(networks(plain)).to.equal(networksValue(vmi));
    await createLauncher((pod) => delete pod.metadata.annotations);
    await plane.client.delete(PODS, launcher.metadata, { gracePeriodSeconds: 0 });
  });

  it('blocks launchers while it is down, and admits them with the same certificate when it is back', async () => {
    await stop();
    const { data } = await plane.client.get(SECRETS, { namespace: SYSTEM, name: `${NAME}-tls` });
    expect((await requestErrorOf(createLauncher())).message).to.include('failed calling webhook');
    running = await start();
    expect(networks(await createLauncher())).to.equal(pointed());
    expect((await plane.client.get(SECRETS, { namespace: SYSTEM, name: `${NAME}-tls` })).data).to.deep.equal(data);
  });
});
