import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { isTerminal } from '../../api/pod.js';
import type { KubeObject } from '../../api/meta.js';
import { expect } from 'chai';
import type { Resource } from '../../kube/resource.js';
import {
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../kube/resources.js';
import * as vm from '../../bed/story/vms/vm.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { type Migration, MIGRATIONS } from '../../bed/story/vms/migrations.js';
import type { Bed } from '../../bed/bed.js';
import { useBareBed } from '../../bed/story/bare-bed.js';

const NAMESPACE = 'smoke';
const VM = { namespace: NAMESPACE, name: 'vm1' };

interface Node extends KubeObject {
  status: { conditions: { type: string; status: string }[] };
}

const NODES: Resource<Node> = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

const STATEFUL_SETS: Resource<KubeObject & { spec: object }> = {
  group: 'apps',
  version: 'v1',
  plural: 'statefulsets',
  kind: 'StatefulSet',
  namespaced: true,
};

/** The bed without Holdfast: every lifecycle works, and its time is printed. */
describe('The test bed', function () {
  this.timeout(120_000);
  let bed: Bed;

  before(async () => {
    const started = Date.now();
    bed = await startBareBed((line) => console.log(`    ${Date.now() - started} ms ${line}`));
    await bed.client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    for (const name of ['blue', 'green']) {
      const config = JSON.stringify({ cniVersion: '1.0.0', name, type: 'bridge', bridge: name });
      await bed.client.create(NETWORK_ATTACHMENT_DEFINITIONS, {
        metadata: { namespace: NAMESPACE, name },
        spec: { config },
      });
    }
  });

  after('remove all VMs', () => bed.client.delete(NAMESPACES, { name: NAMESPACE }));

  const startBareBed = useBareBed();

  afterEach(() => bed.switches.clear());

  it('starts a new VM', async () => {
    await timed('create', async () => {
      await bed.client.create(VIRTUAL_MACHINES, vm.vmManifest({ ...VM, networks: { data: 'blue' } }));
      await vm.waitRunning(bed.client, VM);
    });
  });

  it('stops and starts a VM', async () => {
    await timed('stop', async () => {
      await vm.callSubresource(bed.client, VM, 'stop');
      await untilNoVmi();
    });
    await timed('start', async () => {
      await vm.callSubresource(bed.client, VM, 'start');
      await vm.waitRunning(bed.client, VM);
    });
  });

  it('restarts a VM with a new VMI', async () => {
    const before = await vm.waitRunning(bed.client, VM);
    await timed('restart', async () => {
      await vm.callSubresource(bed.client, VM, 'restart');
      await untilVmi('to be another one', (vmi) => vmi.metadata.uid !== before.metadata.uid && isRunning(vmi));
    });
  });

  it('migrates a VM to the other node', async () => {
    const source = await nodeOf();
    await timed('migrate (500 ms of it copying)', async () => {
      await migrate('migration-ok');
      await untilMigration('migration-ok', 'Succeeded');
    });
    expect(await nodeOf()).not.to.equal(source);
    await until('the source launcher to end', async () => (await vm.launchers(bed.client, VM)).length === 1);
  });

  it('leaves a VM on its node if the migration fails', async () => {
    const source = await nodeOf();
    bed.switches.set({ migration: 'fail' }, VM);
    await timed('failed migration', async () => {
      await migrate('migration-failing');
      await untilMigration('migration-failing', 'Failed');
    });
    expect(await nodeOf()).to.equal(source);
  });

  it('aborts a migration that is deleted during the copy', async () => {
    const source = await nodeOf();
    bed.switches.set({ migration: 'hold' }, VM);
    await migrate('migration-aborted');
    await untilMigration('migration-aborted', 'Running');
    await timed('aborted migration', async () => {
      await bed.client.delete(MIGRATIONS, { namespace: NAMESPACE, name: 'migration-aborted' });
      await until('the migration to be gone', async () => !(await findMigration('migration-aborted')));
    });
    expect(await nodeOf()).to.equal(source);
    await until('the target launcher to end', async () => (await vm.launchers(bed.client, VM)).length === 1);
  });

  it('plugs an interface into a running guest and unplugs it', async () => {
    await timed('hotplug', async () => {
      await vm.addInterface(bed.client, VM, { name: 'more', nad: 'green' });
      await untilVmi('to have the interface', (vmi) => sourceOf(vmi, 'more') === 'domain, multus-status');
    });
    await timed('unplug', async () => {
      await vm.removeInterface(bed.client, VM, 'more');
      await untilVmi('to lose the interface', (vmi) => sourceOf(vmi, 'more') === undefined);
    });
  });

  it('replaces a launcher that is killed', async () => {
    const [launcher] = await vm.launchers(bed.client, VM);
    await timed('killed launcher', async () => {
      await bed.client.delete(PODS, { namespace: NAMESPACE, name: launcher!.metadata.name });
      await until('another launcher to run', async () => {
        const [other] = await vm.launchers(bed.client, VM);
        return (
          other && other.metadata.uid !== launcher!.metadata.uid && isRunning(await vm.waitRunning(bed.client, VM))
        );
      });
    });
  });

  it('replaces a launcher that is deleted by force', async () => {
    const before = await vm.waitRunning(bed.client, VM);
    const [launcher] = await vm.launchers(bed.client, VM);
    await timed('vanished launcher', async () => {
      await bed.client.delete(PODS, { namespace: NAMESPACE, name: launcher!.metadata.name }, { gracePeriodSeconds: 0 });
      await untilVmi('to be another one', (vmi) => vmi.metadata.uid !== before.metadata.uid && isRunning(vmi));
    });
  });

  it('keeps a guest running as long as the test holds its termination', async () => {
    const letGo = bed.switches.set({ holdTermination: true }, VM);
    await vm.callSubresource(bed.client, VM, 'stop');
    await untilVmi('to be asked to stop', (vmi) => vmi.metadata.deletionTimestamp !== undefined);
    expect((await vm.launchers(bed.client, VM)).filter((pod) => !isTerminal(pod))).to.have.length(1);
    letGo();
    await untilNoVmi();
  });

  it('changes nothing on a lost node until it is back', async () => {
    await vm.callSubresource(bed.client, VM, 'start');
    await vm.waitRunning(bed.client, VM);
    const node = await nodeOf();
    bed.switches.loseNode(node);
    await untilReady(node, 'Unknown');
    await vm.callSubresource(bed.client, VM, 'stop');
    await untilVmi('to be asked to stop', (vmi) => vmi.metadata.deletionTimestamp !== undefined);
    expect(await vm.launchers(bed.client, VM)).to.have.length(1);
    bed.switches.recoverNode(node);
    await untilReady(node, 'True');
    await untilNoVmi();
  });

  it('starts no guest while Multus rejects its networks', async () => {
    const mend = bed.switches.set({ refuseNetworks: true }, VM);
    await vm.callSubresource(bed.client, VM, 'start');
    await until('the launcher to be bound', async () => (await vm.launchers(bed.client, VM))[0]?.spec?.nodeName);
    expect((await vm.launchers(bed.client, VM))[0]?.status?.phase).to.equal('Pending');
    mend();
    await vm.waitRunning(bed.client, VM);
  });

  it('deletes VMs in the background, in the foreground and without their VMIs', async () => {
    for (const propagationPolicy of ['Background', 'Foreground'] as const) {
      await timed(`delete ${propagationPolicy}`, async () => {
        await bed.client.delete(VIRTUAL_MACHINES, VM, { propagationPolicy });
        await vm.waitGone(bed.client, VM);
      });
      await bed.client.create(VIRTUAL_MACHINES, vm.vmManifest({ ...VM, networks: { data: 'blue' } }));
      await vm.waitRunning(bed.client, VM);
    }
    await bed.client.delete(VIRTUAL_MACHINES, VM, { propagationPolicy: 'Orphan' });
    await until('the VM to be gone', async () => !(await bed.client.find(VIRTUAL_MACHINES, VM)));
    expect(isRunning(await bed.client.get(VIRTUAL_MACHINE_INSTANCES, VM))).to.equal(true);
  });

  it('runs the pods of a StatefulSet under their names, and replaces one', async () => {
    const labels = { app: 'pair' };
    await bed.client.create(STATEFUL_SETS, {
      metadata: { namespace: NAMESPACE, name: 'pair' },
      spec: {
        replicas: 2,
        serviceName: '',
        podManagementPolicy: 'Parallel',
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'registry.test/main' }] } },
      },
    });
    const untilPods = (description: string, isRight: (uids: readonly unknown[]) => boolean) =>
      untilValue(
        description,
        () => Promise.all(['pair-0', 'pair-1'].map((name) => bed.client.find(PODS, { namespace: NAMESPACE, name }))),
        (pods) => isRight(pods.flatMap((pod) => (pod?.status?.phase === 'Running' ? [pod.metadata.uid] : []))),
      );
    const [first] = await untilPods('both pods to run', (uids) => uids.length === 2);
    await bed.client.delete(PODS, { namespace: NAMESPACE, name: 'pair-0' });
    await untilPods('another pair-0 to run', (uids) => uids.length === 2 && !uids.includes(first?.metadata.uid));
  });

  async function untilVmi(description: string, isRight: (vmi: VirtualMachineInstance) => boolean): Promise<void> {
    await vm.waitForVmi(bed.client, VM, description, isRight);
  }

  async function untilNoVmi(): Promise<void> {
    await untilValue(
      'VMI and launchers to be gone',
      async () => [await bed.client.find(VIRTUAL_MACHINE_INSTANCES, VM), await vm.launchers(bed.client, VM)] as const,
      ([vmi, launchers]) => vmi === undefined && launchers.length === 0,
    );
  }

  async function untilReady(node: string, expected: string): Promise<void> {
    await untilValue(
      `node ${node} to report Ready ${expected}`,
      () => bed.client.get(NODES, { name: node }),
      ({ status }) => status.conditions.some(({ type, status }) => type === 'Ready' && status === expected),
    );
  }

  async function nodeOf(): Promise<string> {
    const { status } = await bed.client.get(VIRTUAL_MACHINE_INSTANCES, VM);
    return (status as { nodeName: string }).nodeName;
  }

  async function migrate(name: string): Promise<void> {
    await bed.client.create(MIGRATIONS, { metadata: { namespace: NAMESPACE, name }, spec: { vmiName: VM.name } });
  }

  function findMigration(name: string): Promise<Migration | undefined> {
    return bed.client.find(MIGRATIONS, { namespace: NAMESPACE, name });
  }

  async function untilMigration(name: string, phase: string): Promise<void> {
    await untilValue(
      `migration ${name} to be ${phase}`,
      () => findMigration(name),
      (found) => found?.status?.phase === phase,
    );
  }
});

function isRunning(vmi: VirtualMachineInstance): boolean {
  return vmi.status?.phase === 'Running' && vmi.metadata.deletionTimestamp === undefined;
}

function sourceOf(vmi: VirtualMachineInstance, name: string): string | undefined {
  return vmi.status?.interfaces?.find((entry) => entry.name === name)?.infoSource;
}

async function timed(what: string, act: () => Promise<void>): Promise<void> {
  const started = Date.now();
  await act();
  console.log(`      ${what}: ${Date.now() - started} ms`);
}
