import { NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { systemClock } from '../../kube/clock.js';
import { NAMESPACES, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { startControlPlane, type ControlPlane } from '../control-plane/control-plane.js';
import { createCrds } from '../control-plane/crds.js';
import type { Attachment } from '../node/network-status.js';
import { nodeObject } from '../node/node-object.js';
import { KUBELET_PODS, type KubeletPod } from '../node/pod.js';
import { createAll } from '../control-plane/objects.js';
import { openPodNetworks } from './open-pod-networks.js';
import type { PodNetworks } from './pod-networks.js';
import { openWire, type Wire } from './wire.js';

export const FIXTURE_NAMESPACE = 'wire';
const NODES = ['node-1', 'node-2'] as const;

/** A control plane and two nodes with real pod networks, for tests that need neither KubeVirt nor Holdfast. */
export class WireFixture {
  readonly plane: ControlPlane;
  readonly wire: Wire;
  readonly networks: PodNetworks;
  #made = 0;

  private constructor(plane: ControlPlane, wire: Wire, networks: PodNetworks) {
    this.plane = plane;
    this.wire = wire;
    this.networks = networks;
  }

  /** @returns the fixture, or the reason why this machine does not allow it */
  static async open(): Promise<WireFixture | string> {
    const plane = await startControlPlane();
    try {
      let reason = '';
      const wire = await openWire(plane.processes, (line) => (reason = line));
      if (wire) {
        await prepareCluster(plane);
        const started = Date.now();
        const networks = await openPodNetworks(plane, wire, { nodes: NODES });
        console.log(`    two nodes on the wire: ${Date.now() - started} ms`);
        return new WireFixture(plane, wire, networks);
      }
      await plane.stop();
      return reason;
    } catch (error) {
      await plane.stop();
      throw error;
    }
  }

  /** Detaches and removes all pods. */
  async removePods(): Promise<void> {
    const { items } = await this.plane.client.list(KUBELET_PODS, { namespace: FIXTURE_NAMESPACE });
    for (const pod of items) {
      await this.networks.detach(pod);
      const ref = { namespace: FIXTURE_NAMESPACE, name: pod.metadata.name };
      await this.plane.client.delete(KUBELET_PODS, ref, { gracePeriodSeconds: 0 });
    }
  }

  /** Creates a NAD, unless an earlier test has created one with this name. */
  async createNetwork(name: string, config: object): Promise<void> {
    const ref = { namespace: FIXTURE_NAMESPACE, name };
    if (await this.plane.client.find(NETWORK_ATTACHMENT_DEFINITIONS, ref)) return;
    const spec = { config: JSON.stringify({ ...config, name }) };
    await this.plane.client.create(NETWORK_ATTACHMENT_DEFINITIONS, { metadata: ref, spec });
  }

  /** Creates a pod on a node. @param selections elements of its networks annotation */
  createPod(node: string, selections: object[]): Promise<KubeletPod> {
    const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify(selections) };
    const containers = [{ name: 'main', image: 'registry.test/main' }];
    return this.plane.client.create(KUBELET_PODS, {
      metadata: { namespace: FIXTURE_NAMESPACE, name: `pod-${++this.#made}`, annotations },
      spec: { nodeName: node, containers },
    });
  }

  /** Changes the networks annotation of a running pod. */
  select(pod: KubeletPod, selections: object[]): Promise<KubeletPod> {
    const body = { metadata: { annotations: { [NETWORKS_ANNOTATION]: JSON.stringify(selections) } } };
    const ref = { namespace: FIXTURE_NAMESPACE, name: pod.metadata.name };
    return this.plane.client.patch(KUBELET_PODS, ref, { type: 'merge', body });
  }

  /** The network-status of a pod. */
  async networkStatusOf(pod: KubeletPod): Promise<Attachment[]> {
    const { metadata } = await this.plane.client.get(KUBELET_PODS, {
      namespace: FIXTURE_NAMESPACE,
      name: pod.metadata.name,
    });
    return JSON.parse(metadata.annotations?.[NETWORK_STATUS_ANNOTATION] ?? '[]') as Attachment[];
  }
}

async function prepareCluster(plane: ControlPlane): Promise<void> {
  await createCrds(plane.client, []);
  await plane.client.create(NAMESPACES, { metadata: { name: FIXTURE_NAMESPACE } });
  await createAll(plane.client, [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { namespace: FIXTURE_NAMESPACE, name: 'default' } },
    ...NODES.map((name) => ({ ...nodeObject(name, systemClock.wall()), apiVersion: 'v1', kind: 'Node' })),
  ]);
}

export function bridgeNetwork(bridge: string, ipam: object, more: object = {}): object {
  return { cniVersion: '1.0.0', type: 'bridge', bridge, capabilities: { ips: true }, ipam, ...more };
}
