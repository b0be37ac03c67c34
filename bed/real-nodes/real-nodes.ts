import { join } from 'node:path';
import type { Progress } from '../build/binaries.js';
import { API_SERVER_ADDRESSES, type Certificates } from '../control-plane/certificates.js';
import type { ControlPlane } from '../control-plane/control-plane.js';
import { writeKubeconfig } from '../control-plane/kubeconfig.js';
import type { Manifest } from '../control-plane/objects.js';
import { applyManifests } from '../holdfast/manifests.js';
import { createNodeNetwork } from './cluster-network.js';
import { isMultusThick, multusImage, multusObjects, pauseImage } from './images/images.js';
import type { NodePrograms } from './images/node-programs.js';
import type { Image } from './images/oci-image.js';
import { ImageRegistry } from './images/registry.js';
import { RealNode } from './real-node.js';
import { waitDaemonSet, waitNodeReady } from './rollout.js';

const [API_SERVER] = API_SERVER_ADDRESSES;
/** Pods reach the API server at the address and port of the Service `kubernetes`, without kube-proxy. */
export const API_SERVER_PORT = 443;

/** Flags with which kube-apiserver serves real nodes, each with its own identity and the rights of a node. */
export function apiServerFlagsFor(certificates: Certificates): string[] {
  return [
    '--bind-address=0.0.0.0',
    `--advertise-address=${API_SERVER}`,
    // besides RBAC
    '--authorization-mode=Node',
    '--enable-admission-plugins=NodeRestriction',
    `--client-ca-file=${certificates.caFile}`,
    `--kubelet-client-certificate=${certificates.kubeletClientCert}`,
    `--kubelet-client-key=${certificates.kubeletClientKey}`,
    '--kubelet-preferred-address-types=InternalIP',
  ];
}

interface RealNodesOptions {
  readonly names: readonly string[];
  /** Besides those of the nodes themselves. */
  readonly images: readonly Image[];
  /** The name of a large image, which nodes pull while Multus and KubeVirt start. */
  readonly prefetched: string;
  readonly programs: NodePrograms;
  readonly progress: Progress;
}

/** Boots nodes in the network of this process, which must be its own, and waits until they are Ready and Multus runs on them. */
export async function startRealNodes(
  plane: ControlPlane,
  { names, images, prefetched, programs, progress }: RealNodesOptions,
): Promise<{ nodes: RealNode[]; registry: ImageRegistry }> {
  await createNodeNetwork();
  const system = [await pauseImage(progress), await multusImage(progress)];
  const registry = await ImageRegistry.start(join(plane.dataDir, 'registry'), [...system, ...images]);
  const cluster = { server: `https://${API_SERVER}`, caBundle: plane.caBundle };
  const nodes = await Promise.all(
    names.map(async (name, index) => {
      const credential = plane.certificates.clientOf(`system:node:${name}`, 'system:nodes');
      const kubeconfig = await writeKubeconfig(join(plane.workDir, `${name}.kubeconfig`), cluster, credential);
      const folder = join(plane.dataDir, 'nodes', name);
      const { processes } = plane;
      const clientCa = plane.certificates.ca;
      const node = new RealNode({ name, number: index + 1, processes, programs, folder, kubeconfig, clientCa });
      await node.install();
      await node.boot();
      return node;
    }),
  );
  await applyManifests(plane.client, (await multusObjects()).map(withAdaptedPods));
  await Promise.all(names.map((name) => waitNodeReady(plane, name)));
  progress(`${String(names.length)} real nodes are Ready`);
  for (const node of nodes) void node.prefetch(prefetched).catch(() => undefined); // kubelet pulls it, too
  await waitDaemonSet(plane, { namespace: 'kube-system', name: 'kube-multus-ds' });
  progress('Multus runs on each node');
  return { nodes, registry };
}

const NETNS_MOUNT = { name: 'host-run-netns', mountPath: '/var/run/netns', mountPropagation: 'HostToContainer' };

/**
 * Multus 4.2.2 puts the address of the Service `kubernetes` into brackets, and Go 1.25.2 and newer, with which the bed compiles it, accept only IPv6
 * addresses there. Its released image was compiled with an older Go, and has the link `/var/run`: images of the bed have no links.
 */
function withAdaptedPods(object: Manifest): Manifest {
  if (object.kind !== 'DaemonSet') return object;
  const copy = structuredClone(object) as Manifest & {
    spec: { template: { spec: { containers: { env?: object[]; volumeMounts: object[] }[] } } };
  };
  for (const container of copy.spec.template.spec.containers) {
    (container.env ??= []).push({ name: 'KUBERNETES_SERVICE_HOST', value: `::ffff:${API_SERVER_ADDRESSES[1]}` });
    if (isMultusThick) container.volumeMounts.push(NETNS_MOUNT);
  }
  return copy;
}
