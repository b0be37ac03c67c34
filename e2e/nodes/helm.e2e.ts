import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { type Pod, podInterfaceName } from '../../api/pod.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { applyManifests, readInstallation } from '../../bed/holdfast/manifests.js';
import { capture } from '../../bed/processes/processes.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { waitHoldfast } from '../../bed/real-nodes/real-cluster.js';
import { environment } from '../../bed/story/hooks.js';
import { KubectlPlugin } from '../../bed/story/kubectl/kubectl-plugin.js';
import type { Kubectl } from '../../bed/story/kubectl/kubectl.js';
import { NodeStory } from '../../bed/story/nodes.js';
import { Story } from '../../bed/story/story.js';
import { objectsOfHoldfast } from '../../bed/story/kubectl/uninstall.js';
import { qualifiedName } from '../../cli/forbidden.js';
import { KEPT_POLICY, OWN_KINDS } from '../../cli/uninstall/plan.js';
import { copyChart } from '../../manifests/testing/render.js';
import { goTool } from '../../test/go-tools.js';
import { ELECTED, holdfastPods, OF_HOLDFAST } from '../../bed/story/real-nodes/component-pods.js';

const REGISTRY = 'registry.example.com';

/** Commands as docs/how-to/install.md, upgrade.md and uninstall.md have them. */
if (process.env.BED_NODES === 'real') {
  describe('A cluster on which a Helm release replaces the installation of kubectl, and is replaced again', function () {
    this.timeout(300_000);
    let story: Story;
    let nodes: NodeStory;
    let kubectl: Kubectl;
    let folder: string;
    let image: string;
    /** Of the running VM, which no test changes, and of the other one. */
    let unchanged: Awaited<ReturnType<typeof stateOfRunning>>;
    let addressOfOther: string;
    let hasFailed = false;

    before('run a VM, and create another one that is stopped', async () => {
      const { realCluster } = environment();
      if (realCluster === undefined) throw new Error('there are no real nodes');
      story = await Story.begin(environment());
      nodes = new NodeStory(story, realCluster);
      kubectl = await story.kubectl();
      folder = join(realCluster.workDir, 'helm');
      await mkdir(folder);
      await copyChart(join(folder, 'chart'));
      await writeFile(
        join(folder, 'values.yaml'),
        stringify({ image: { registry: REGISTRY }, kubevirtNamespace: 'kubevirt' }),
      );
      await nodes.createNetwork('blue', ['10.82.0.0/28']);
      await story.createVm('web', { data: 'blue' });
      await story.createVm('other', { data: 'blue' }, { running: false });
      await story.waitRunning('web');
      addressOfOther = (await story.addresses.waitForIPs('other.data'))[0]!;
      unchanged = await stateOfRunning();
      expect(unchanged.inPod).to.equal(unchanged.ofClaim);
    });

    after('install Holdfast again, if a test failed', async () => {
      if (hasFailed) {
        await helm('uninstall', 'holdfast', '--ignore-not-found', '--wait').catch(console.log);
        await applyManifests(story.client, await readInstallation());
        await waitHoldfast(nodes.cluster);
      }
      await story.end();
    });

    beforeEach('go on only if all was well', function () {
      if (hasFailed) this.skip();
    });

    afterEach('remember a failure', function () {
      hasFailed ||= this.currentTest?.state === 'failed';
    });

    it('keeps kinds, data and running VMs after kubectl delete, and a VM that starts then waits', async () => {
      image = (await holdfastPods(story.client)).map(imageOf)[0]!;
      expect((await uninstallAdvice()).stdout).to.include('kubectl delete -k <your overlay>');
      await kubectl.succeed(['delete', 'daemonset', '-n', 'holdfast-agents', 'holdfast-agent', '--cascade=foreground']);
      const webhooks = 'mutatingwebhookconfigurations,validatingwebhookconfigurations';
      await kubectl.succeed(['delete', webhooks, '-l', OF_HOLDFAST]);
      await kubectl.succeed(['delete', '-k', 'manifests/base', '--ignore-not-found']);
      await waitLeft([]);
      expect(await stateOfRunning()).to.deep.equal(unchanged);
      await story.requestStart('other');
      const [launcher] = await until('the VM to have a launcher', async () => {
        const found = await story.launchers('other');
        return found.length > 0 && found;
      });
      await story.waitForEvent(launcher!.metadata.name, 'FailedCreatePodSandBox', /holdfast/);
    });

    it('is ready for an installation, as kubectl holdfast preflight says with the networks that it changes', async () => {
      const { exitCode, stdout } = await preflight();
      expect(exitCode, stdout).to.equal(0);
      expect(stdout)
        .to.include('OK holdfast: is not installed yet')
        .and.include('OK cni-folder: Multus uses /opt/cni/bin')
        .and.include(`WARN NetworkAttachmentDefinition ${story.namespace}/blue`)
        .and.include('its pods start only when Holdfast runs');
      expect(stdout).to.match(/^OK multus: DaemonSet kube-system\/kube-multus-ds, (thin|thick) /m);
      expect(stdout).to.match(/^OK vms: 2 VMs with 2 interfaces /m);
    });

    it('gives the waiting VM its address when the chart is installed, and passes helm test', async () => {
      for (const tag of ['0.1.0', '0.1.1'])
        nodes.cluster.registry.tag(`docker.io/library/${image}`, `${REGISTRY}/holdfast:${tag}`);
      const flags = ['--create-namespace', '--values', join(folder, 'values.yaml'), '--wait'];
      await helm('install', 'holdfast', join(folder, 'chart'), ...flags, '--take-ownership');
      await waitRolledOut(`${REGISTRY}/holdfast:0.1.0`);
      await helm('test', 'holdfast');
      await story.waitRunning('other');
      await expectAddresses();
      const { exitCode, stdout } = await preflight();
      expect(exitCode, stdout).to.equal(0);
      expect(stdout).to.match(/^OK holdfast: is installed: .*holdfast-agents\/holdfast-agent/m);
      expect(stdout).not.to.include('its pods start only when Holdfast runs');
    });

    it('keeps the addresses when the release is upgraded to another image, and rolled back', async () => {
      const values = ['--values', join(folder, 'values.yaml'), '--set', 'image.tag=0.1.1'];
      await helm('upgrade', 'holdfast', join(folder, 'chart'), ...values, '--wait');
      await waitRolledOut(`${REGISTRY}/holdfast:0.1.1`);
      await story.restart('other');
      await expectAddresses();
      await helm('rollback', 'holdfast', '1', '--wait');
      await waitRolledOut(`${REGISTRY}/holdfast:0.1.0`);
      await story.stop('other');
      await story.start('other');
      await expectAddresses();
    });

    it('keeps kinds, data and the namespace with the Leases after helm uninstall', async () => {
      expect((await uninstallAdvice()).stdout).to.include('helm uninstall holdfast -n holdfast-system');
      await helm('uninstall', 'holdfast');
      await waitLeft([
        ...ELECTED.map((component) => `Lease ${HOLDFAST_NAMESPACE}/holdfast-${component}`),
        `Namespace ${HOLDFAST_NAMESPACE}`,
      ]);
      expect(await stateOfRunning()).to.deep.equal(unchanged);
    });

    it('serves the same VMs when kubectl installs the manifests again', async () => {
      await kubectl.succeed(['apply', '--server-side', '-k', 'manifests/crds']);
      await kubectl.succeed(['apply', '--server-side', '-k', 'manifests/base']);
      await kubectl.succeed(['-n', HOLDFAST_NAMESPACE, 'rollout', 'status', 'deployment', '--timeout=10m']);
      await kubectl.succeed([
        '-n',
        'holdfast-agents',
        'rollout',
        'status',
        'daemonset',
        'holdfast-agent',
        '--timeout=30m',
      ]);
      await waitRolledOut(image);
      await story.restart('other');
      await expectAddresses();
    });

    async function helm(...args: readonly string[]): Promise<string> {
      const access = ['--kubeconfig', nodes.cluster.kubeconfig, '--namespace', HOLDFAST_NAMESPACE];
      return capture(await goTool('helm'), [...args, ...access]);
    }

    function preflight() {
      return new KubectlPlugin(nodes.cluster.kubeconfig, ['preflight']).result;
    }

    async function uninstallAdvice() {
      const result = await new KubectlPlugin(nodes.cluster.kubeconfig, ['uninstall']).result;
      expect(result).to.have.property('exitCode', 0);
      return result;
    }

    /** Waits until all pods run this image, and none of another one is left. */
    async function waitRolledOut(wanted: string): Promise<void> {
      await waitHoldfast(nodes.cluster);
      await untilValue(
        `all pods to run ${wanted}`,
        async () => new Set((await holdfastPods(story.client)).map(imageOf)),
        (images) => images.size === 1 && images.has(wanted),
      );
    }

    async function waitLeft(others: readonly string[]): Promise<void> {
      const kept = [
        ...OWN_KINDS.map((kind) => `CustomResourceDefinition ${qualifiedName(kind)}`),
        ...['ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'].map(
          (kind) => `${kind} ${KEPT_POLICY.name}`,
        ),
        ...others,
      ].sort();
      await untilValue(
        `only ${kept.join(', ')} to be left`,
        async () =>
          (await objectsOfHoldfast(story.client)).filter(
            (name) => !/^(Address(Pool|Lease|Block)|IPAMClaim) /.test(name),
          ),
        (left) => left.join() === kept.join(),
        { timeoutMs: 90_000 },
      );
    }

    async function stateOfRunning() {
      const [vmi, [launcher]] = [await story.waitRunning('web'), await story.launchers('web')];
      return {
        uids: [vmi.metadata.uid, launcher?.metadata.uid],
        inPod: await nodes.addressOf(launcher!, podInterfaceName('data')),
        ofClaim: (await story.addresses.waitForIPs('web.data'))[0],
      };
    }

    async function expectAddresses(): Promise<void> {
      expect(await stateOfRunning()).to.deep.equal(unchanged);
      const [launcher] = await story.launchers('other');
      expect(await nodes.addressOf(launcher!, podInterfaceName('data'))).to.equal(addressOfOther);
    }
  });
}

function imageOf(pod: Pod): string {
  return (pod.spec as { containers: { image: string }[] }).containers[0]!.image;
}
