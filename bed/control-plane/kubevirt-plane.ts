import { join } from 'node:path';
import type { Binaries, Progress } from '../build/binaries.js';
import type { Certificates } from './certificates.js';
import { type ControlPlane, startControlPlaneOn } from './control-plane.js';
import { startControllerManager, startScheduler } from './controllers.js';
import { createCrds } from './crds.js';
import { createRbac, deployKubeVirt, generateManifests, startVirtController } from './kubevirt.js';
import { createAll, readManifests } from './objects.js';
import { VirtApi } from './virt-api.js';
import { openWorkspace, type WorkspaceOptions } from './workspace.js';

export interface KubeVirtPlaneOptions<Nodes> extends WorkspaceOptions {
  readonly binaries: Binaries;
  readonly progress: Progress;
  /** Undefined if the nodes are simulated. */
  readonly realNodes?: { readonly apiServerPort: number; apiServerFlagsOf(certificates: Certificates): string[] };
  /** Called when all kinds exist and before KubeVirt runs. */
  readonly startNodes: (plane: ControlPlane) => Promise<Nodes>;
}

/**
 * Starts the control planes of Kubernetes and KubeVirt with the nodes of `startNodes`.
 * @returns their `stop` ends the nodes first
 * @throws {Error} with the end of the log of a process that exited; everything is stopped then
 */
export async function startKubeVirtPlane<Nodes extends { stop(): Promise<void> }>(
  options: KubeVirtPlaneOptions<Nodes>,
): Promise<{ plane: ControlPlane; nodes: Nodes }> {
  const { binaries, progress, realNodes, startNodes } = options;
  const workspace = await openWorkspace(options);
  let nodes: Nodes | undefined;
  try {
    const virtApi = new VirtApi(workspace, binaries.virtApi);
    await virtApi.launch();
    const plane = await startControlPlaneOn(workspace, binaries, {
      ...(realNodes && {
        apiServerFlags: realNodes.apiServerFlagsOf(workspace.certificates),
        apiServerPort: realNodes.apiServerPort,
      }),
    });
    progress(`kube-apiserver is ready on ${plane.server}`);
    startScheduler(plane, binaries.scheduler);
    const manifests = await generateManifests(binaries.virtController);
    await createAll(plane.client, await readManifests(join(import.meta.dirname, '..', 'manifests', 'namespaces.yaml')));
    await Promise.all([createCrds(plane.client, manifests.crds), createRbac(plane, manifests)]);
    progress('all CRDs are established');
    startControllerManager(plane, binaries.controllerManager, realNodes !== undefined);
    const started = await startNodes(plane);
    nodes = started;
    await Promise.all([
      deployKubeVirt(plane),
      virtApi.connect(plane, manifests),
      startVirtController(plane, binaries.virtController),
    ]);
    progress('KubeVirt is ready');
    const stop = async () => {
      await started.stop();
      await plane.stop();
    };
    return { plane: { ...plane, stop }, nodes: started };
  } catch (error) {
    await nodes?.stop();
    await workspace.abandon();
    throw error;
  }
}
