import { expect } from 'chai';
import { untilValue } from '../../bed/processes/wait.js';
import { waitHoldfast } from '../../bed/real-nodes/real-cluster.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { ADDRESS_LEASES, PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';

/** Of a pod without a node, which never existed. */
const LEAKED = '10.93.0.9';

describeOnNodes('A pod that is deleted by force while its kubelet is down', (story, nodes) => {
  it('keeps its address while its containers run', async function () {
    this.timeout(400_000); // Holdfast releases a leaked lease after 90 s
    const network = await nodes().createNetwork('blue', ['10.93.0.0/28']);
    const { addresses, client, namespace } = story();
    const node = nodes().node(nodes().names[0]);
    const pod = await nodes().createPod('stays', { networks: [{ name: 'blue' }], node: node.name });
    const address = bareAddress(await nodes().addressOf(pod, 'net1'));
    await node.stopService('kubelet');
    try {
      await client.delete(PODS, story().ref('stays'), { gracePeriodSeconds: 0 });
      await untilValue(
        'the agent to say that it keeps the lease',
        () => node.run('sh', '-c', 'grep -rh "keeping the lease" /var/log/pods/holdfast-agents_* || true'),
        (lines) => lines.includes(address.replaceAll('.', '-')),
        { timeoutMs: 90_000 },
      );
      // ipam releases this one only after it could have released the other
      const pool = (await addresses.waitForDerivedPool(network)).metadata.name;
      const owner = { kind: 'Pod' as const, namespace, name: 'ghost', uid: 'no-such-uid' };
      await client.create(ADDRESS_LEASES, leaseNamed(network, LEAKED, { pool, owner }));
      await untilValue(
        'ipam to release the lease of the other pod that is gone',
        () => addresses.heldAddresses(),
        (held) => !held.includes(LEAKED),
        { timeoutMs: 180_000 },
      );
      expect(await addresses.heldAddresses()).to.deep.equal([address]);
      expect(await nodes().addressOf(pod, 'net1')).to.match(new RegExp(`^${address}/`));
    } finally {
      await node.startService('kubelet');
      await waitHoldfast(nodes().cluster);
    }
    await addresses.waitHeld([]);
  });
});
