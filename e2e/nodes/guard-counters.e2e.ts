import { join } from 'node:path';
import { expect } from 'chai';
import { createAll, readManifests, resourceOf } from '../../bed/control-plane/objects.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import { until } from '../../bed/processes/wait.js';
import { waitDaemonSet } from '../../bed/real-nodes/rollout.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { holdfastPods } from '../../bed/story/real-nodes/component-pods.js';
import { rightsOf } from '../../bed/story/real-nodes/container-process.js';

/** The capability has the number 12. */
const NET_ADMIN = (1 << 12).toString(16).padStart(16, '0');
const FILTER = 2;
const COUNTERS = '/run/holdfast/guards/counters.json';

describeOnNodes('The component guard-counters on real nodes', (story, nodes) => {
  it('counts what guards drop, in the network of each node and with NET_ADMIN alone', async () => {
    const { client } = story();
    const objects = await readManifests(join(MANIFESTS, 'components', 'guard-counters', 'daemonset.yaml'));
    await createAll(client, objects);
    try {
      const [set] = objects.filter(({ kind }) => kind === 'DaemonSet');
      await waitDaemonSet({ client }, { namespace: set?.metadata.namespace ?? '', name: set?.metadata.name ?? '' });
      const counters = await holdfastPods(client, 'agent-guard');
      expect(counters.map(({ spec }) => spec?.nodeName)).to.have.members([...nodes().names]);
      for (const pod of counters) {
        expect(await rightsOf(nodes().node(pod.spec?.nodeName), pod)).to.deep.equal({
          ...{ user: 0, group: 0, capabilities: [NET_ADMIN, NET_ADMIN] },
          ...{ noNewPrivileges: true, seccomp: FILTER, isRootReadOnly: true },
        });
      }
      await nodes().createNetwork('blue', ['10.88.0.0/28'], { guard: { mode: 'Enforce' } });
      const pod = await nodes().createPod('pod', { networks: [{ name: 'blue' }] });
      const node = nodes().node(pod.spec?.nodeName);
      await node.runInPod(pod, 'ip', 'address', 'add', '10.88.0.14/28', 'dev', 'net1');
      await until('the foreign ARP to be counted', async () => {
        await node.runInPod(pod, 'sh', '-c', 'busybox ping -c 1 -W 1 -I 10.88.0.14 10.88.0.13 || true');
        return (await node.run('cat', COUNTERS)).includes('"arp_sender":');
      });
    } finally {
      for (const object of objects) await client.delete(resourceOf(object), object.metadata);
    }
  });
});
