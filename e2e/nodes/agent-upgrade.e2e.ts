import { expect } from 'chai';
import { until } from '../../bed/processes/wait.js';
import { waitForEvent } from '../../bed/story/events.js';
import { AGENTS_NAMESPACE } from '../../bed/holdfast/install.js';
import { waitDaemonSet } from '../../bed/real-nodes/rollout.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import type { Pod } from '../../api/pod.js';
import { PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';

const AGENT = { namespace: AGENTS_NAMESPACE, name: 'holdfast-agent' };
const COUNT = 10;
const networks = [{ name: 'blue' }];

describeOnNodes('The DaemonSet of agents', (story, nodes) => {
  const restart = async () => {
    await (await story().kubectl()).succeed(['rollout', 'restart', `daemonset/${AGENT.name}`, '-n', AGENT.namespace]);
  };

  it('that is rolled out while pods start and stop loses and shares no address', async () => {
    await nodes().createNetwork('blue', ['10.84.0.0/24']);
    const { addresses, client } = story();
    const nameOf = (kind: string, index: number) => `${kind}-${String(index)}`;
    const request = (kind: string) =>
      Promise.all(
        Array.from({ length: COUNT }, (_, index) => {
          const node = nodes().names[index % nodes().names.length]!;
          return nodes().requestPod(nameOf(kind, index), { networks, node });
        }),
      );
    const ready = (kind: string) =>
      Promise.all(Array.from({ length: COUNT }, (_, index) => nodes().waitReady(nameOf(kind, index))));
    await request('old');
    await ready('old');
    await restart();
    await Promise.all([
      request('new'),
      ...Array.from({ length: COUNT }, (_, index) => client.delete(PODS, story().ref(nameOf('old', index)))),
    ]);
    const started = await ready('new');
    await waitDaemonSet(nodes().cluster, AGENT);
    const found = await Promise.all(started.map((pod) => nodes().addressOf(pod, 'net1')));
    expect(new Set(found).size).to.equal(COUNT);
    await addresses.waitHeld(found.map(bareAddress));
  });

  it('waits while the CNI folder is read-only and lacks the plugin, says so, and goes on when it is writable', async () => {
    await nodes().createNetwork('blue', ['10.84.1.0/24']);
    const { client } = story();
    const [name = ''] = nodes().names;
    const node = nodes().node(name);
    const agents = async () => {
      const labelSelector = 'app.kubernetes.io/component=agent';
      const { items } = await client.list(PODS, { namespace: AGENT.namespace, labelSelector });
      return items.filter(({ spec }) => spec?.nodeName === name);
    };
    await node.run('rm', '/opt/cni/bin/holdfast');
    await node.run('mount', '--bind', '/opt/cni/bin', '/opt/cni/bin');
    await node.run('mount', '--options', 'remount,bind,ro', '/opt/cni/bin');
    try {
      for (const { metadata } of await agents()) await client.delete(PODS, { ...AGENT, name: metadata.name });
      const failure = await until('the init container to fail', async () =>
        (await agents()).map(failureOf).find(Boolean),
      );
      expect(failure).to.include('cannot install the CNI plugin as /opt/cni/bin/holdfast on the node');
      expect(failure).to.include('The directory is read-only');
      await nodes().requestPod('waits', { networks, node: name });
      await waitForEvent(client, story().ref('waits'), 'FailedCreatePodSandBox', /"holdfast"/);
    } finally {
      await node.run('umount', '--lazy', '/opt/cni/bin'); // a container that ends may still use it
      await waitDaemonSet(nodes().cluster, AGENT);
    }
    await nodes().waitReady('waits');
  });

  it('serves the pods of a node again after somebody has removed /run/holdfast there', async () => {
    await nodes().createNetwork('blue', ['10.84.2.0/24']);
    const [name = ''] = nodes().names;
    await nodes().node(name).run('rm', '-rf', '/run/holdfast');
    await nodes().createPod('starts', { networks, node: name });
    await waitDaemonSet(nodes().cluster, AGENT);
  });
});

/** Why the init container ended. */
function failureOf(pod: Pod): string | undefined {
  const { initContainerStatuses = [] } = pod.status as {
    initContainerStatuses?: { state?: Terminated; lastState?: Terminated }[];
  };
  const [{ state, lastState } = {}] = initContainerStatuses;
  return state?.terminated?.message ?? lastState?.terminated?.message;
}

interface Terminated {
  readonly terminated?: { readonly message?: string };
}
