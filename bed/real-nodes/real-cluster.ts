import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { nodeOfImage } from '../../test/image/node.js';
import { ensureBinaries, type Progress } from '../build/binaries.js';
import { kubeVirtVersion } from '../build/versions.js';
import type { ControlPlane } from '../control-plane/control-plane.js';
import type { Manifest } from '../control-plane/objects.js';
import { startKubeVirtPlane } from '../control-plane/kubevirt-plane.js';
import type { WorkspaceOptions } from '../control-plane/workspace.js';
import { AGENTS_NAMESPACE, HOLDFAST_NAMESPACE } from '../holdfast/install.js';
import { applyManifests, readInstallation } from '../holdfast/manifests.js';
import {
  busyboxImage,
  containerDiskImage,
  guestLauncherImage,
  holdfastImage,
  launcherImage,
  multusImage,
  multusObjects,
  ordinaryImage,
  pauseImage,
} from './images/images.js';
import { ensureGuestPrograms, type GuestPrograms } from './images/guest-programs.js';
import { Guests } from './guests.js';
import { Launchers } from './launchers.js';
import { ensureNodePrograms, type NodePrograms } from './images/node-programs.js';
import type { RealNode } from './real-node.js';
import { API_SERVER_PORT, apiServerFlagsFor, startRealNodes } from './real-nodes.js';
import type { ImageRegistry } from './images/registry.js';
import { DEPLOYMENTS, waitDaemonSet, waitDeployment } from './rollout.js';
import { NodeVirtHandlers } from './virt-handlers.js';

/** Of the tutorials. Guests do not run, so their disks are empty. */
const DISKS = ['quay.io/containerdisks/fedora:latest', 'quay.io/containerdisks/debian:13'];

export interface RealClusterOptions extends WorkspaceOptions {
  readonly progress: Progress;
  /** Number of nodes; 2 by default, which live migration needs. */
  readonly nodes?: number;
  /** Whether launchers run guests; not by default. */
  readonly withGuests?: boolean;
  /** Changes what is installed, as an overlay of kustomize does. */
  readonly overlay?: (object: Manifest) => Manifest;
}

/** A KubeVirt cluster with real nodes, on which Holdfast is installed as users install it. */
export interface RealCluster extends ControlPlane {
  readonly nodes: readonly RealNode[];
  /** From which the nodes pull all images. */
  readonly registry: ImageRegistry;
  /** Undefined if launchers run no guests. */
  readonly guests?: Guests;
}

/** Builds and downloads what {@link startRealCluster} needs, because there is no network in its namespaces. */
export async function prepareRealCluster(progress: Progress, withGuests = false): Promise<void> {
  await ensureBinaries(progress, true);
  await ensureNodePrograms(progress);
  if (withGuests) await ensureGuestPrograms(progress);
  await pauseImage(progress);
  await multusImage(progress);
  await multusObjects();
  progress('Node.js of the image, which npm has');
  await nodeOfImage();
}

/** @throws {Error} outside of namespaces of its own */
export async function startRealCluster(options: RealClusterOptions): Promise<RealCluster> {
  const { progress, nodes: count = 2, withGuests = false, overlay = (object: Manifest) => object } = options;
  const names = Array.from({ length: count }, (_, index) => `node-${String(index + 1)}`);
  const binaries = await ensureBinaries(progress, true);
  const { plane, nodes } = await startKubeVirtPlane({
    ...options,
    binaries,
    realNodes: { apiServerPort: API_SERVER_PORT, apiServerFlagsOf: apiServerFlagsFor },
    startNodes: async (started) => {
      const programs = await ensureNodePrograms(progress);
      const guestPrograms = withGuests ? await ensureGuestPrograms(progress) : undefined;
      const images = await workloadImages(started, { ...programs, guests: guestPrograms }, progress);
      const [{ name: prefetched }] = images;
      const realNodes = { names, images, prefetched, programs, progress };
      const { nodes: machines, registry } = await startRealNodes(started, realNodes);
      const guests = guestPrograms && new Guests(machines, guestPrograms);
      const handlers = await NodeVirtHandlers.start(started, machines, guests ?? new Launchers(machines));
      const stop = async () => {
        await handlers.stop();
        registry.close();
      };
      return { machines, registry, guests, stop };
    },
  });
  const { machines, registry, guests } = nodes;
  const cluster = { ...plane, nodes: machines, registry, ...(guests && { guests }) };
  try {
    await applyManifests(plane.client, (await readInstallation()).map(overlay));
    await waitHoldfast(cluster);
    progress('Holdfast runs in pods on these nodes');
    return cluster;
  } catch (error) {
    await plane.stop();
    throw error;
  }
}

/** Waits until all of Holdfast's pods are ready. */
export async function waitHoldfast(plane: ControlPlane): Promise<void> {
  const { items } = await plane.client.list(DEPLOYMENTS, { namespace: HOLDFAST_NAMESPACE });
  await Promise.all([
    waitDaemonSet(plane, { namespace: AGENTS_NAMESPACE, name: 'holdfast-agent' }),
    ...items.map(({ metadata: { name } }) => waitDeployment(plane, { namespace: HOLDFAST_NAMESPACE, name })),
  ]);
}

/** The first one is Holdfast's. */
async function workloadImages(
  plane: ControlPlane,
  { runtime, guests }: NodePrograms & { readonly guests: GuestPrograms | undefined },
  progress: Progress,
) {
  const folder = join(plane.dataDir, 'holdfast-image');
  await mkdir(folder, { recursive: true });
  const { version } = kubeVirtVersion();
  const launcher = `registry.test/virt-launcher:${version}`;
  return [
    await holdfastImage(join(folder, 'root')),
    await (guests ? guestLauncherImage(launcher, guests, progress) : launcherImage(launcher, progress)),
    await ordinaryImage(progress),
    ...DISKS.map((name) => containerDiskImage(name)),
    containerDiskImage(`quay.io/kubevirt/cirros-container-disk-demo:${version}`),
    busyboxImage('quay.io/prometheus/busybox:latest', join(runtime, 'bin', 'busybox')),
  ] as const;
}
