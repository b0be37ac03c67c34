import type { KubeObject } from '../../api/meta.js';
import { NAMESPACES, NETWORK_ATTACHMENT_DEFINITIONS, PODS, STATEFUL_SETS } from '../../kube/resources.js';
import { VmActions } from '../../bed/story/vms/vm-actions.js';
import { untilValue } from '../../bed/processes/wait.js';
import type { Bed } from '../../bed/bed.js';
import { useBareBed } from '../../bed/story/bare-bed.js';

const NAMESPACE = 'smoke';
const VM = 'vm1';

/** The bed without Holdfast. The stories about claims have all lifecycles of VMs. */
describe('The test bed', () => {
  let bed: Bed;
  let vms: VmActions;

  before(async () => {
    const started = Date.now();
    bed = await startBareBed((line) => console.log(`    ${Date.now() - started} ms ${line}`));
    await bed.client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    const config = JSON.stringify({ cniVersion: '1.0.0', name: 'blue', type: 'bridge', bridge: 'blue' });
    const metadata = { namespace: NAMESPACE, name: 'blue' };
    await bed.client.create(NETWORK_ATTACHMENT_DEFINITIONS, { metadata, spec: { config } });
    vms = new VmActions(bed.client, NAMESPACE);
  });

  after('remove all VMs', () => bed.client.delete(NAMESPACES, { name: NAMESPACE }));

  const startBareBed = useBareBed();

  it('starts a new VM', async () => {
    await vms.runVm(VM, { data: 'blue' });
  });

  it('replaces a launcher that is deleted by force', async () => {
    const before = await vms.waitRunning(VM);
    const [launcher] = await vms.launchers(VM);
    await bed.client.delete(PODS, vms.ref(launcher!.metadata.name), { gracePeriodSeconds: 0 });
    await vms.waitReplaced(VM, before);
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
    } as KubeObject);
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
});
