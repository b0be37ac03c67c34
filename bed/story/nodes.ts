import { describe } from 'mocha';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import { type NetworkStatus, type Pod, networkStatuses } from '../../api/pod.js';
import { PODS } from '../../kube/resources.js';
import type { RealCluster } from '../real-nodes/real-cluster.js';
import { ORDINARY_IMAGE } from '../real-nodes/images/images.js';
import type { Guest } from '../real-nodes/guest.js';
import { containerIdOf, type RealNode } from '../real-nodes/real-node.js';
import type { Vmi } from '../node/vmi/virtual-machine-instance.js';
import { isReportedReady } from '../node/pod-status.js';
import { untilValue } from '../processes/wait.js';
import type { AddressStory } from './addresses.js';
import { describeStory } from './describe.js';
import { EVENTS, type StoryEvent } from './events.js';
import { environment } from './hooks.js';
import { bridgeOf } from './networks.js';
import type { Story } from './story.js';

type Rest<Method extends (...args: never[]) => unknown> =
  Parameters<Method> extends [unknown, ...infer Others] ? Others : never;

export interface NodePodOptions {
  /** Elements of its networks annotation. */
  readonly networks: readonly object[];
  /** Binds the pod without a scheduler. */
  readonly node?: string;
}

/** The real nodes with the pods of one story. */
export class NodeStory {
  readonly cluster: RealCluster;
  readonly #story: Story;

  constructor(story: Story, cluster: RealCluster) {
    this.#story = story;
    this.cluster = cluster;
  }

  get names(): readonly string[] {
    return this.cluster.nodes.map(({ name }) => name);
  }

  node(name = ''): RealNode {
    const found = this.cluster.nodes.find((node) => node.name === name);
    if (found === undefined) throw new Error(`there is no node "${name}", only ${this.names.join(', ')}`);
    return found;
  }

  /** The guest of a VMI that runs. */
  guest(vmi: Pick<Vmi, 'metadata'>): Guest {
    if (this.cluster.guests === undefined) throw new Error('no guests run here');
    return this.cluster.guests.of(vmi);
  }

  /** Creates a network on a bridge that connects all nodes. */
  async createNetwork(name: string, ...rest: Rest<AddressStory['createNetwork']>): Promise<string> {
    const network = await this.#story.addresses.createNetwork(name, ...rest);
    await this.connectBridge(network);
    return network;
  }

  /** Makes a bridge for a network that connects all nodes. @returns its name */
  async connectBridge(network: string): Promise<string> {
    const bridge = bridgeOf(network);
    for (const node of this.cluster.nodes) await node.connect(bridge);
    return bridge;
  }

  /** Creates an ordinary pod, and waits until it is ready. */
  async createPod(name: string, options: NodePodOptions): Promise<Pod> {
    await this.requestPod(name, options);
    return this.waitReady(name);
  }

  /** Creates an ordinary pod and does not wait. */
  requestPod(name: string, { networks, node }: NodePodOptions): Promise<Pod> {
    const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify(networks) };
    const containers = [{ name: 'main', image: ORDINARY_IMAGE }];
    const spec = { containers, terminationGracePeriodSeconds: 1, ...(node !== undefined && { nodeName: node }) };
    return this.#story.client.create(PODS, { metadata: { ...this.#story.ref(name), annotations }, spec });
  }

  waitReady(name: string): Promise<Pod> {
    return this.#waitPod(name, 'to be ready', isReportedReady);
  }

  /** Waits until another container of the pod is ready. */
  waitRestarted(before: Pod): Promise<Pod> {
    const { name } = before.metadata;
    const isRestarted = (pod: Pod) => isReportedReady(pod) && containerIdOf(pod) !== containerIdOf(before);
    return this.#waitPod(name, 'to be ready again', isRestarted);
  }

  #waitPod(name: string, description: string, isRight: (pod: Pod) => boolean): Promise<Pod> {
    const read = () => this.#story.client.get(PODS, this.#story.ref(name));
    return untilValue(`pod ${name} ${description}`, read, isRight, { timeoutMs: 90_000 });
  }

  /** kubelet's events about containers that it started: one that it started again has a count of 2. */
  async startedContainers(): Promise<StoryEvent[]> {
    const { items } = await this.#story.client.list(EVENTS, {
      namespace: this.#story.namespace,
      fieldSelector: 'reason=Started',
    });
    return items;
  }

  /** Waits until the runtime, Multus and the plugins have forgotten sandboxes: their files are in /var/lib/cni. */
  async waitNoTrace(node: RealNode, sandboxes: readonly string[]): Promise<void> {
    await untilValue(
      `/var/lib/cni of ${node.name} to have no file of an earlier sandbox`,
      async () => {
        const text = await node.run('sh', '-c', 'find /var/lib/cni; grep --recursive . /var/lib/cni');
        return sandboxes.filter((id) => text.includes(id));
      },
      (found) => found.length === 0,
    );
  }

  /** The addresses of an interface, as its kernel has them: with prefix lengths and without link-local ones. */
  async addressesOf(pod: Pod, interfaceName: string): Promise<string[]> {
    const output = await this.node(pod.spec?.nodeName).runInPod(pod, 'ip', '-json', 'address', 'show', interfaceName);
    const [device] = JSON.parse(output) as { addr_info: { local: string; prefixlen: number; scope: string }[] }[];
    const global = device?.addr_info.filter(({ scope }) => scope === 'global') ?? [];
    return global.map(({ local, prefixlen }) => `${local}/${String(prefixlen)}`);
  }

  /** The only address of an interface. */
  async addressOf(pod: Pod, interfaceName: string): Promise<string> {
    const [address, ...others] = await this.addressesOf(pod, interfaceName);
    if (address === undefined || others.length > 0)
      throw new Error(
        `${pod.metadata.name} has not one address on ${interfaceName}: ${[address, ...others].join(' ')}`,
      );
    return address;
  }

  /** The addresses of an interface in network-status, without prefix lengths. */
  reported(pod: Pod, interfaceName: string): readonly string[] | undefined {
    const statuses = networkStatuses(pod) as readonly (NetworkStatus & { readonly ips?: readonly string[] })[];
    return statuses.find((status) => status.interface === interfaceName)?.ips;
  }

  /** @throws {Error} if an address does not answer a pod */
  async ping(from: Pod, address: string): Promise<void> {
    await this.node(from.spec?.nodeName).runInPod(from, 'busybox', 'ping', '-c', '2', '-W', '5', address);
  }
}

/** A suite whose tests need guests on real nodes. It exists only where they run. */
export function describeWithGuests(...args: Parameters<typeof describeOnNodes>): void {
  if (process.env.BED_GUESTS !== undefined) describeOnNodes(...args);
}

/** A suite whose tests need real nodes. It exists only where they run. */
export function describeOnNodes(title: string, define: (story: () => Story, nodes: () => NodeStory) => void): void {
  if (process.env.BED_NODES !== 'real') return;
  describe(title, () => {
    afterEach('switch on nodes that are off', async () => {
      const { realCluster } = environment();
      for (const node of realCluster?.nodes.filter(({ isOn }) => !isOn) ?? []) await node.boot();
    });
    describeStory('with Holdfast in pods', (story) => {
      define(story, () => {
        const { realCluster } = environment();
        if (realCluster === undefined) throw new Error('there are no real nodes');
        return new NodeStory(story(), realCluster);
      });
    });
  });
}
