import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { CLAIM_REFERENCE_KEY } from '../../api/names.js';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { PODS } from '../../kube/resources.js';
import { describeStory } from '../../bed/story/describe.js';
import { clientAs } from '../../bed/story/users/service-account.js';
import { Tenant } from '../../bed/story/tenant.js';
import { untilValue } from '../../bed/processes/wait.js';
import { environment } from '../../bed/story/hooks.js';
import { withoutWebhook, refusedPod, stripReferences, untilAdmitted } from '../../bed/story/wire/wire-admission.js';
import { itWithWireStory, type WireStory } from '../../bed/story/wire/wire-story.js';
import { ORDINARY_IMAGE } from '../../bed/real-nodes/images/images.js';

const DATA = podInterfaceName('data');
const REFERENCES_ALLOWED = { 'ipam.holdfast.dev/claim-references': 'allowed' };

describeStory('A launcher whose reference was removed before its networks are set up', (story) => {
  itWithWireStory('still gets the addresses of its claim', story, async (wire) => {
    const { switches } = wire.context.bed;
    await story().addresses.createNetwork('blue', ['10.75.0.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const letGo = switches.set({ holdNetworks: true }, story().ref('vm1'));
    await startWithoutWaiting();
    const launcher = await boundLauncher();
    expect((await story().references('vm1'))[0]).to.deep.equal({ [DATA]: 'vm1.data' });
    await withoutWebhook(story(), () => stripReferences(story(), launcher));
    expect((await story().references('vm1'))[0]).to.deep.equal({});
    letGo();
    await story().waitRunning('vm1');
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, addresses);
    expect(await story().addresses.heldAddresses()).to.deep.equal(addresses.map(bareAddress));
  });

  itWithWireStory('gets the same addresses in a new sandbox', story, async (wire) => {
    await story().addresses.createNetwork('blue', ['10.75.1.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const launcher = await wire.launcher('vm1');
    const { containerId } = wire.context.wire.sandboxOf(launcher);
    await withoutWebhook(story(), () => stripReferences(story(), launcher));
    await wire.context.wire.restartSandbox(launcher);
    await untilValue(
      'another sandbox',
      () => wire.context.wire.networks.find(launcher.metadata.uid ?? '')?.containerId,
      (found) => found !== undefined && found !== containerId,
    );
    await wire.waitForAddresses(launcher, DATA, addresses);
    expect(await story().addresses.heldAddresses()).to.deep.equal(addresses.map(bareAddress));
  });

  async function startWithoutWaiting(): Promise<void> {
    const path = `/apis/subresources.kubevirt.io/v1/namespaces/${story().namespace}/virtualmachines/vm1/start`;
    await story().client.transport.request({ method: 'PUT', path, body: {}, accept: '*/*' });
  }

  async function boundLauncher(): Promise<Pod> {
    const [launcher] = await untilValue(
      'a launcher that is bound',
      () => story().launchers('vm1'),
      ([found]) => found?.spec?.nodeName !== undefined,
    );
    return launcher!;
  }
});

describeStory('A pod of another owner', (story) => {
  /** A running VM and its addresses. */
  async function runningVm(wire: WireStory, cidr: string): Promise<{ launcher: Pod; addresses: string[] }> {
    await story().addresses.createNetwork('blue', [cidr]);
    await story().runVm('vm1', { data: 'blue' });
    const addresses = await story().addresses.waitForIPs('vm1.data');
    const launcher = await wire.launcher('vm1');
    await wire.waitForAddresses(launcher, DATA, addresses);
    return { launcher, addresses };
  }

  /** Checks that the VM has its addresses and no other pod has any of them. */
  async function vmIsUnharmed(wire: WireStory, addresses: readonly string[]): Promise<void> {
    await wire.waitForAddresses(await wire.launcher('vm1'), DATA, addresses);
    const lease = (await story().addresses.leases()).get(bareAddress(addresses[0]!));
    expect(lease?.spec.owner).to.include({ kind: 'IPAMClaim', name: 'vm1.data' });
    expect(lease?.spec.releasedAt).to.equal(undefined);
  }

  itWithWireStory(
    'that references the claim of a VM is rejected at admission, and by the agent if it passes admission',
    story,
    async (wire) => {
      const { addresses } = await runningVm(wire, '10.75.2.0/24');
      const element = { name: 'blue', [CLAIM_REFERENCE_KEY]: 'vm1.data' };
      const thief = () => wire.createPod('thief', { networks: [element] });
      expect(await refusedPod(thief)).to.include('only launcher pods');
      await story().labelNamespace(REFERENCES_ALLOWED);
      await untilAdmitted(thief);
      const words = await wire.waitForSandboxFailure('thief', /ipam-claim-reference/);
      expect(words).to.include('"vm1.data"').and.to.include('only the pods of its VM may use it');
      await vmIsUnharmed(wire, addresses);
      // not even while the VM is stopped
      await story().stop('vm1');
      await untilAdmitted(() => wire.createPod('second', { networks: [element] }));
      await wire.waitForSandboxFailure('second', /only the pods of its VM may use it/);
      expect(await story().addresses.heldAddresses()).to.deep.equal(addresses.map(bareAddress));
    },
  );

  itWithWireStory(
    'with the labels of a launcher is rejected at admission, and by the agent if it passes admission',
    story,
    async (wire) => {
      const { launcher, addresses } = await runningVm(wire, '10.75.3.0/24');
      const labels = Object.fromEntries(
        Object.entries(launcher.metadata.labels ?? {}).filter(([key]) => key.startsWith('kubevirt.io')),
      );
      expect(labels).to.include({ 'kubevirt.io': 'virt-launcher' });
      const element = { name: 'blue', interface: DATA, [CLAIM_REFERENCE_KEY]: 'vm1.data' };
      const impostor = (name: string) => () => wire.createPod(name, { networks: [element], labels });
      expect(await refusedPod(impostor('first'))).to.include('no VirtualMachineInstance');
      await story().labelNamespace(REFERENCES_ALLOWED);
      await withoutWebhook(story(), () => untilAdmitted(impostor('second')));
      expect(await wire.waitForSandboxFailure('second', /VirtualMachineInstance/)).to.include(
        `${story().namespace}/second`,
      );
      await vmIsUnharmed(wire, addresses);
    },
  );

  itWithWireStory(
    'that references a claim on a network without allowPersistentIPs gets an error instead of an address',
    story,
    async (wire) => {
      const network = `${story().namespace}-plain`;
      await story().network('plain', { network, subnets: [{ cidr: '10.75.4.0/24' }], persistent: false });
      await story().labelNamespace(REFERENCES_ALLOWED);
      await story().claims.createPlain('mine', network);
      const element = { name: 'plain', [CLAIM_REFERENCE_KEY]: 'mine' };
      await untilAdmitted(() => wire.createPod('pod-1', { networks: [element] }));
      const words = await wire.waitForSandboxFailure('pod-1', /does not allow persistent addresses/);
      expect(words)
        .to.include(`${story().namespace}/plain`)
        .and.to.include('"allowPersistentIPs"')
        .and.to.include('"mine"');
      const leases = [...(await story().addresses.leases()).values()];
      expect(leases.filter(({ spec }) => spec.owner?.kind === 'Pod')).to.deep.equal([]);
    },
  );

  itWithWireStory(
    'that references a claim without an owner gets its addresses, one pod at a time',
    story,
    async (wire) => {
      const network = await story().addresses.createNetwork('blue', ['10.75.5.0/24']);
      await story().labelNamespace(REFERENCES_ALLOWED);
      await story().claims.createPlain('mine', network);
      const addresses = await story().addresses.waitForIPs('mine');
      const element = { name: 'blue', [CLAIM_REFERENCE_KEY]: 'mine' };
      await untilAdmitted(() => wire.createPod('pod-1', { networks: [element] }));
      await wire.waitForAddresses(await wire.waitRunning('pod-1'), 'net1', addresses);
      await wire.createPod('pod-2', { networks: [element] });
      expect(await wire.waitForSandboxFailure('pod-2', /is used by pod/)).to.include(`${story().namespace}/pod-1`);
      await wire.deletePod('pod-1');
      await wire.waitForAddresses(await wire.waitRunning('pod-2'), 'net1', addresses);
    },
  );

  itWithWireStory(
    'that forges its owner is rejected for every version of apiVersion, and the VM restarts with its address',
    story,
    async (wire) => {
      const { launcher, addresses } = await runningVm(wire, '10.75.7.0/24');
      const tenant = await Tenant.createPodCreator(environment(), story().namespace);
      try {
        for (const apiVersion of ['kubevirt.io', 'kubevirt.io/x', 'kubevirt.io/v1', 'kubevirt.io/v1alpha3']) {
          expect(await tenant.launcherCopyRejection(launcher, apiVersion), apiVersion).to.include(
            'VirtualMachineInstance',
          );
        }
      } finally {
        await tenant.close();
      }
      await story().restart('vm1');
      await story().waitRunning('vm1');
      await vmIsUnharmed(wire, addresses);
    },
  );

  itWithWireStory(
    'that is a second launcher of a running VM waits while the VM keeps its address',
    story,
    async (wire) => {
      const { launcher, addresses } = await runningVm(wire, '10.75.6.0/24');
      const controller = await clientAs(environment(), { namespace: 'kubevirt', name: 'kubevirt-controller' });
      try {
        const { annotations = {}, labels = {}, ownerReferences = [] } = launcher.metadata;
        const networks = annotations['k8s.v1.cni.cncf.io/networks'] ?? '';
        const nodeName = wire.otherNode(launcher.spec!.nodeName!);
        const spec = { nodeName, containers: [{ name: 'compute', image: ORDINARY_IMAGE }] };
        const metadata = { ...story().ref('second'), labels, ownerReferences };
        const copy = { metadata: { ...metadata, annotations: { 'k8s.v1.cni.cncf.io/networks': networks } }, spec };
        await controller.create(PODS, copy);
        const words = await wire.waitForSandboxFailure('second', /is used by pod/);
        expect(words).to.include(`${story().namespace}/${launcher.metadata.name}`);
        await wire.waitForAddresses(launcher, DATA, addresses);
      } finally {
        await wire.deletePod('second');
        await controller.transport.close();
      }
      await vmIsUnharmed(wire, addresses);
    },
  );
});
