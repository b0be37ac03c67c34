import { randomBytes } from 'node:crypto';
import type { ObjectMeta } from '../../api/meta.js';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { cniArgs } from '../../bed/network/multus.js';
import { type Pool, compilePool } from '../../addressing/pool/pool.js';
import type { Client } from '../../kube/client.js';
import { NETWORK_ATTACHMENT_DEFINITIONS, PODS } from '../../kube/resources.js';
import { runLoad } from '../load.js';
import type { PluginRun } from './plugin-caller.js';
import { type BenchNode, type CniCluster, NAMESPACE } from './cluster.js';

/** One interface of a pod that is bound to a node. */
export interface PodInterface {
  readonly pod: Pod;
  readonly node: BenchNode;
  readonly interfaceName: string;
  readonly containerId: string;
  /** The NAD's config, as passed to the plugin. */
  readonly config: object;
}

export interface BenchNetwork {
  readonly nad: string;
  readonly config: object;
  /** Derived from the NAD. */
  readonly pool: Pool;
}

export interface PodOptions {
  readonly network: BenchNetwork;
  readonly interfaceName: string;
  readonly metadata?: Partial<ObjectMeta>;
  /** More keys of the element in the networks annotation. */
  readonly element?: object;
}

/** Creates a NAD, and waits until all agents know its pool. */
export async function createNetwork(
  { plane, addresses, nodes, caller }: CniCluster,
  nad: string,
  subnet: string,
): Promise<BenchNetwork> {
  const name = await addresses.createNetwork(nad, [subnet]);
  const { spec } = await plane.client.get(NETWORK_ATTACHMENT_DEFINITIONS, { namespace: NAMESPACE, name: nad });
  const config = { ...(JSON.parse(spec?.config ?? '{}') as object), cniVersion: '1.1.0' };
  for (const { agent } of nodes) {
    let ran: PluginRun;
    do ran = await caller.call({ CNI_COMMAND: 'STATUS', HOLDFAST_SOCKET: agent.socket }, config);
    while (ran.exit !== 0);
  }
  const compiled = compilePool(await addresses.waitForDerivedPool(name));
  if (!compiled.ok) throw new Error(`the pool of ${name}: ${compiled.problems.map(String).join(', ')}`);
  return { nad, config, pool: compiled.pool };
}

/** Creates pods with one interface, distributed over all nodes. */
export async function bindPods(cluster: CniCluster, network: BenchNetwork, count: number): Promise<PodInterface[]> {
  const interfaces: PodInterface[] = [];
  const batch = randomBytes(4).toString('hex');
  const create = async (n: number) => {
    const node = cluster.nodes[n % cluster.nodes.length]!;
    const options = { network, interfaceName: 'net1' };
    interfaces[n] = await createPod(cluster.plane.client, `pod-${batch}-${String(n)}`, node, options);
  };
  await runLoad(create, { count, concurrency: 16 });
  return interfaces;
}

/** Creates a pod that is bound to a node and never run. */
export async function createPod(
  client: Client,
  name: string,
  node: BenchNode,
  options: PodOptions,
): Promise<PodInterface> {
  const { network, interfaceName, metadata = {}, element = {} } = options;
  const networks = [{ name: network.nad, namespace: NAMESPACE, interface: interfaceName, ...element }];
  const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify(networks) };
  const spec = {
    nodeName: node.agent.node,
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image: 'registry.test/main' }],
  };
  const pod = await client.create(PODS, { metadata: { namespace: NAMESPACE, name, annotations, ...metadata }, spec });
  return { pod, node, interfaceName, containerId: randomBytes(32).toString('hex'), config: network.config };
}

/** Calls the plugin as Multus does for the interface. */
export function callFor(
  { caller }: CniCluster,
  command: 'ADD' | 'DEL' | 'VERSION',
  { pod, node, interfaceName, containerId, config }: PodInterface,
): Promise<PluginRun> {
  const env = {
    CNI_COMMAND: command,
    CNI_CONTAINERID: containerId,
    CNI_NETNS: `/var/run/netns/${containerId.slice(0, 8)}`,
    CNI_IFNAME: interfaceName,
    CNI_PATH: '/opt/cni/bin',
    CNI_ARGS: cniArgs(pod, containerId),
    HOLDFAST_SOCKET: node.agent.socket,
  };
  return caller.call(env, config);
}

/** Returns the addresses of a result, with prefix lengths. */
export function addressesOf({ output }: PluginRun): string[] {
  const { ips = [] } = JSON.parse(output) as { ips?: { address: string }[] };
  return ips.map(({ address }) => address);
}

export function codeOf({ output }: PluginRun): number {
  return (JSON.parse(output) as { code: number }).code;
}
