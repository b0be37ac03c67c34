import { expect } from 'chai';
import { PODS } from '../../kube/resources.js';
import { until } from '../../bed/processes/wait.js';
import { isMultusThick } from '../../bed/real-nodes/images/images.js';
import { containerIdOf } from '../../bed/real-nodes/real-node.js';
import { DAEMON_SETS, waitDaemonSet } from '../../bed/real-nodes/rollout.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';

const DAEMON = { namespace: 'kube-system', name: 'kube-multus-ds' };
const networks = [{ name: 'blue' }];

if (isMultusThick)
  describeOnNodes('Multus with a daemon', (story, nodes) => {
    const daemons = async () => {
      const { items } = await story().client.list(PODS, { namespace: DAEMON.namespace, labelSelector: 'name=multus' });
      return items;
    };

    /** Removes the daemons, or lets them come back. */
    async function schedule(nodeSelector: Record<string, string | null>): Promise<void> {
      const body = { spec: { template: { spec: { nodeSelector } } } };
      await story().client.patch(DAEMON_SETS, DAEMON, { type: 'merge', body });
    }

    it('gives each pod one address although it is killed while they start', async () => {
      await nodes().createNetwork('blue', ['10.86.0.0/24']);
      const names = Array.from({ length: 4 }, (_, index) => `pod-${String(index)}`);
      const node = nodes().node(nodes().names[0]);
      const [daemon] = (await daemons()).filter(({ spec }) => spec?.nodeName === node.name);
      for (const [index, name] of names.entries()) {
        await nodes().requestPod(name, { networks, ...(index < 3 && { node: node.name }) });
        if (index !== 1) continue;
        await node.killContainer(containerIdOf(daemon!), 'SIGKILL');
      }
      const pods = await Promise.all(names.map((name) => nodes().waitReady(name)));
      const found = await Promise.all(pods.map((pod) => nodes().addressOf(pod, 'net1')));
      pods.forEach((pod, index) => expect(nodes().reported(pod, 'net1')).to.deep.equal([bareAddress(found[index]!)]));
      await nodes().ping(pods[0]!, bareAddress(found[3]!));
      await story().addresses.waitHeld(found.map(bareAddress));
      expect(new Set(found).size).to.equal(names.length);
    });

    // Its shim reports success for DEL then, so the runtime does not try again: the agent sees that the pod is gone.
    it('leaves no lease of a pod that is deleted while it does not run', async function () {
      this.timeout(300_000);
      await nodes().createNetwork('blue', ['10.86.1.0/24']);
      const { addresses, client } = story();
      await nodes().createPod('leaves', { networks });
      await schedule({ 'holdfast.test/no': 'node' });
      try {
        await until('the daemons to be gone', async () => (await daemons()).length === 0);
        await client.delete(PODS, story().ref('leaves'));
        await until('the pod to be gone', async () => (await client.find(PODS, story().ref('leaves'))) === undefined);
        expect(await addresses.heldAddresses()).to.have.length(1);
      } finally {
        await schedule({ 'holdfast.test/no': null });
      }
      await waitDaemonSet(nodes().cluster, DAEMON);
      const isReleased = async () => (await addresses.heldAddresses()).length === 0;
      await until('the lease to be released', isReleased, { timeoutMs: 180_000 });
    });
  });
