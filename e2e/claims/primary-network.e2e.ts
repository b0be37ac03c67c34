import { expect } from 'chai';
import type { Pod } from '../../api/pod.js';
import {
  DEFAULT_NETWORK_ANNOTATION,
  PRIMARY_CLAIM_ANNOTATION,
  PRIMARY_NETWORK_LABEL,
  REQUESTED_ADDRESSES_ANNOTATION,
} from '../../api/names.js';
import { messageOf } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { PODS, VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import type { KubeObject } from '../../api/meta.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { environment } from '../../bed/story/hooks.js';
import { OvnClusterManager } from '../../bed/ovn-kubernetes/cluster-manager.js';
import { OVN_NAMESPACE, servePrimaryNetworks } from '../../bed/ovn-kubernetes/primary-networks.js';
import { describeOnBed, describeStory } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';

const SUBNETS = ['10.100.0.0/16', 'fd10:100::/64'];
const NETWORK = 'tenant-net';
const MAC = '02:00:00:00:05:01';

/** Makes the namespace one of OVN-Kubernetes with a primary network, as its controller does. */
async function createPrimaryNetwork(story: Story): Promise<void> {
  await story.labelNamespace({ [PRIMARY_NETWORK_LABEL]: '' });
  const common = { cniVersion: '1.0.0', type: 'ovn-k8s-cni-overlay', name: NETWORK, topology: 'layer2' };
  const config = { ...common, role: 'primary', subnets: SUBNETS.join(), allowPersistentIPs: true };
  await story.network('udn', { config });
}

describeOnBed('A VM on a primary user-defined network', (story) => {
  let ovn: OvnClusterManager | undefined;
  let undo: (() => Promise<void>) | undefined;

  before('turn the feature gate on', async () => {
    undo = await servePrimaryNetworks(environment().bed!);
  });

  after('turn the feature gate off', async () => {
    await undo?.();
  });

  beforeEach('create the network', async () => {
    await createPrimaryNetwork(story());
    const nad = { namespace: story().namespace, name: 'udn' };
    ovn = await OvnClusterManager.start(environment(), { nad, network: NETWORK, subnets: SUBNETS, isPrimary: true });
  });

  afterEach('stop OVN-Kubernetes', () => ovn?.stop());

  /** Waits until the only launcher has these addresses from OVN-Kubernetes. */
  async function waitForAddresses(name: string, ips: readonly string[]): Promise<Pod> {
    const isServed = (pods: Pod[]) =>
      pods.length === 1 && pods.every((pod) => String(ovn?.addressesOf(pod)) === String(ips));
    const [pod] = await untilValue(`${name} to have ${String(ips)}`, () => story().launchers(name), isServed);
    return pod!;
  }

  const waitServed = (name: string) =>
    story().claims.waitFor(name, 'to have addresses', ({ status }) => (status?.ips ?? []).length > 0);

  it('has a claim for its pod network, and keeps its addresses through migration and restart until it is deleted', async () => {
    await story().runVm('vm1', {});
    const { spec, status } = await waitServed('vm1.default');
    expect(spec).to.deep.equal({ network: NETWORK, interface: 'ovn-udn1' });
    const ips = status?.ips ?? [];
    expect(ips).to.have.length(2);
    const { annotations } = (await waitForAddresses('vm1', ips)).metadata;
    expect(annotations).to.include({ [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default' });
    expect(annotations).not.to.have.property(DEFAULT_NETWORK_ANNOTATION);
    await story().migrate('vm1', 'Succeeded');
    await waitForAddresses('vm1', ips);
    await story().restart('vm1');
    await waitForAddresses('vm1', ips);
    expect((await waitServed('vm1.default')).status).to.deep.equal(status);
    await story().deleteVm('vm1', 'Background');
    await story().waitForClaims([]);
    await untilValue(
      'the addresses to be released',
      () => ovn?.journal.released.join(),
      (released) => released === ips.join(),
    );
    expect(ovn?.journal.releasedInUse).to.deep.equal([]);
    expect(ovn?.journal.conflicts).to.deep.equal([]);
  });

  it('gets the MAC address and the addresses that it requests, besides a secondary network', async () => {
    const request = { default: ['fd10:100::5', '10.100.0.5'] };
    await story().addresses.createNetwork('blue', ['10.101.0.0/24']);
    await story().createVm(
      'vm1',
      { data: 'blue' },
      { annotations: { [REQUESTED_ADDRESSES_ANNOTATION]: JSON.stringify(request) }, macs: { default: MAC } },
    );
    await story().waitRunning('vm1');
    const ips = ['10.100.0.5/16', 'fd10:100::5/64'];
    const wanted = {
      [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default',
      [DEFAULT_NETWORK_ANNOTATION]: JSON.stringify([
        { name: 'default', namespace: OVN_NAMESPACE, ips, mac: MAC, 'ipam-claim-reference': 'vm1.default' },
      ]),
    };
    expect((await waitForAddresses('vm1', ips)).metadata.annotations).to.include(wanted);
    expect(await story().references('vm1')).to.deep.equal([{ [await podInterfaceOf('vm1')]: 'vm1.data' }]);
    await story().restart('vm1');
    expect((await waitForAddresses('vm1', ips)).metadata.annotations).to.include(wanted);
    expect((await waitServed('vm1.default')).status?.ips).to.deep.equal(ips);
  });

  it('is refused by the name of annotation, network and value if it cannot have what it asks for', async () => {
    const requests = {
      outside: {
        annotations: { [REQUESTED_ADDRESSES_ANNOTATION]: '{"default": ["10.200.0.5"]}' },
        words: /network "default": 10\.200\.0\.5 is outside the IPv4 subnet/,
      },
      words: {
        annotations: { [REQUESTED_ADDRESSES_ANNOTATION]: '{"default": ["any"]}' },
        words: /network "default": "any" is not an IP address/,
      },
      json: {
        annotations: { [REQUESTED_ADDRESSES_ANNOTATION]: 'default=10.100.0.5' },
        words: /"default=10\.100\.0\.5" is not a JSON object/,
      },
      default: {
        annotations: { [DEFAULT_NETWORK_ANNOTATION]: 'udn' },
        words: /"v1\.multus-cni\.io\/default-network" is not allowed on pod creation/,
      },
    };
    for (const [name, { annotations }] of Object.entries(requests)) await story().createVm(name, {}, { annotations });
    for (const [name, { words }] of Object.entries(requests)) await story().waitForEvent(name, 'FailedCreate', words);
    expect(await Promise.all(Object.keys(requests).map((name) => story().launchers(name)))).to.deep.equal([
      [],
      [],
      [],
      [],
    ]);
  });

  it('cannot name the claim of another VM in its template, and starts although other NADs of the namespace are invalid', async () => {
    await story().network('a-broken', { config: '{"role": "primary", ' });
    await story().createVm('vm1', {});
    await story().createVm('vm2', {}, { annotations: { [PRIMARY_CLAIM_ANNOTATION]: 'vm1.default' } });
    for (const name of ['vm1', 'vm2']) {
      await story().waitRunning(name);
      await waitForAddresses(name, (await waitServed(`${name}.default`)).status?.ips ?? []);
    }
    const addresses = await Promise.all(
      ['vm1', 'vm2'].map(async (name) => (await waitServed(`${name}.default`)).status?.ips),
    );
    expect(new Set(addresses.flat()).size).to.equal(4);
  });

  it('keeps its annotations while it runs, so that a policy of OVN-Kubernetes that forbids changes stops no update', async () => {
    await whileChangesForbidden(story(), async () => {
      await story().runVm('vm1', {}, { macs: { default: MAC } });
      const pod = await waitForAddresses('vm1', (await waitServed('vm1.default')).status?.ips ?? []);
      const kept = pod.metadata.annotations ?? {};
      const request = {
        metadata: { annotations: { [REQUESTED_ADDRESSES_ANNOTATION]: '{"default": ["10.100.0.77"]}' } },
      };
      await story().client.patch(VIRTUAL_MACHINE_INSTANCES, story().ref('vm1'), { type: 'merge', body: request });
      const changes: Record<string, string | null>[] = [
        { note: 'mine' },
        { [DEFAULT_NETWORK_ANNOTATION]: null },
        { [DEFAULT_NETWORK_ANNOTATION]: 'udn', [PRIMARY_CLAIM_ANNOTATION]: 'vm2.default' },
        { [PRIMARY_CLAIM_ANNOTATION]: null },
      ];
      for (const annotations of changes) {
        const body = { metadata: { annotations } };
        const { metadata } = await story().client.patch(PODS, story().ref(pod.metadata.name), { type: 'merge', body });
        for (const key of [DEFAULT_NETWORK_ANNOTATION, PRIMARY_CLAIM_ANNOTATION]) {
          expect(metadata.annotations?.[key], `${key} after ${JSON.stringify(annotations)}`).to.equal(kept[key]);
        }
      }
    });
  });

  it('waits for the primary network of its namespace, and then starts with its claim', async () => {
    await story().removeNetwork('udn');
    await story().createVm('vm1', {});
    await story().waitForEvent(
      'vm1',
      'FailedCreate',
      /has no valid NetworkAttachmentDefinition with "role": "primary" yet/,
    );
    await story().waitForEvent('vm1', 'NetworkAttachmentNotFound', /create a UserDefinedNetwork with role Primary/);
    await createPrimaryNetwork(story());
    await story().waitRunning('vm1');
    await waitForAddresses('vm1', (await waitServed('vm1.default')).status?.ips ?? []);
  });

  async function podInterfaceOf(name: string): Promise<string> {
    const [references = {}] = await story().references(name);
    return Object.keys(references)[0] ?? '';
  }
});

const POLICIES = policyResource('validatingadmissionpolicies', 'ValidatingAdmissionPolicy');
const BINDINGS = policyResource('validatingadmissionpolicybindings', 'ValidatingAdmissionPolicyBinding');

function policyResource(plural: string, kind: string): Resource<KubeObject & { spec: object }> {
  return { group: 'admissionregistration.k8s.io', version: 'v1', plural, kind, namespaced: false };
}

/** Runs `act` while changes of the default network of pods are forbidden, as OVN-Kubernetes does. */
async function whileChangesForbidden(story: Story, act: () => Promise<void>): Promise<void> {
  const metadata = { name: `default-network-${story.namespace}` };
  try {
    await forbidChanges(story, metadata);
    await act();
  } finally {
    for (const resource of [BINDINGS, POLICIES]) await story.client.delete(resource, metadata);
  }
}

/** Creates the policy, and waits until it is enforced. */
async function forbidChanges({ client, namespace }: Story, metadata: { name: string }): Promise<void> {
  const annotation = `metadata.?annotations['${DEFAULT_NETWORK_ANNOTATION}']`;
  const matchConstraints = {
    resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['UPDATE'] }],
    namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } },
  };
  const message = 'the default network of a pod never changes';
  const validations = [{ expression: `object.${annotation} == oldObject.${annotation}`, message }];
  await client.create(POLICIES, { metadata, spec: { matchConstraints, validations } });
  await client.create(BINDINGS, { metadata, spec: { policyName: metadata.name, validationActions: ['Deny'] } });
  const probe = {
    metadata: { name: 'probe', namespace },
    spec: { containers: [{ name: 'a', image: 'a' }], nodeName: 'none' },
  };
  await client.create(PODS, probe);
  await until('the policy to be enforced', async () => {
    const body = { metadata: { annotations: { [DEFAULT_NETWORK_ANNOTATION]: `udn-${String(Math.random())}` } } };
    const answer = await client.patch(PODS, { namespace, name: 'probe' }, { type: 'merge', body }).catch(messageOf);
    return typeof answer === 'string' && answer.includes(message);
  });
}

describeStory('Without the feature gate for primary networks', (story) => {
  it('a VM starts without a claim on a primary network, and a network in place of the pod network is refused politely', async () => {
    await createPrimaryNetwork(story());
    await story().network('blue');
    await story().createVm('vm1', {});
    await story().createVm('vm2', {}, { running: false });
    await story().change('vm2', ({ spec }) => {
      spec.template.spec.networks = [{ name: 'whole', multus: { networkName: 'blue', default: true } }];
      spec.template.spec.domain.devices.interfaces = [{ name: 'whole', bridge: {} }];
    });
    await story().waitRunning('vm1');
    const words =
      /Network "whole" replaces the pod network \(multus\.default\), .* feature gate PrimaryUserDefinedNetwork/;
    await story().waitForEvent('vm2', 'NetworkNotServed', words);
    await story().waitControllerIdle();
    expect(await story().claimNames()).to.deep.equal([]);
  });
});
