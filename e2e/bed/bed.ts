import { join } from 'node:path';
import { ensureBinaries, type Progress } from './binaries.js';
import { startControlPlaneOn, type ControlPlane } from './control-plane.js';
import { startControllerManager, startScheduler } from './controllers.js';
import { createKinds } from './kinds.js';
import { deployKubeVirt, generateManifests, grantRights, startVirtController } from './kubevirt.js';
import { createAll, readManifests } from './objects.js';
import { type TokenBinding, writeServiceAccountKubeconfig } from './service-accounts.js';
import { startSimulation, type Simulation } from './simulation.js';
import { openSite, type SiteOptions } from './site.js';
import { Switches } from './switches.js';
import { VirtApi } from './virt-api.js';

export interface BedOptions extends SiteOptions {
  /** Number of simulated nodes; 2 by default, which live migration needs. */
  nodes?: number;
  progress?: Progress;
}

/** A whole KubeVirt cluster on loopback: real control planes of Kubernetes and KubeVirt, simulated nodes. */
export interface Bed extends Omit<ControlPlane, 'etcd'> {
  readonly nodes: readonly string[];
  /** Changes how the simulated nodes behave. */
  readonly switches: Switches;
  /** Writes a kubeconfig with a fresh token of an existing service account, bound to a node if one is named. @returns its path */
  serviceAccountKubeconfig(namespace: string, name: string, binding?: TokenBinding): Promise<string>;
  /** See {@link Etcd.compact}: together with a restart of the API server, older watches end with 410 Gone. */
  etcdCompact(): Promise<void>;
}

/**
 * Starts a bed. Several may run at once.
 * @throws {Error} with the end of a log when a process ends; nothing is left running then
 */
export async function startBed(options: BedOptions = {}): Promise<Bed> {
  const progress = options.progress ?? (() => undefined);
  const binaries = await ensureBinaries(progress);
  const site = await openSite(options);
  let simulation: Simulation | undefined;
  try {
    const virtApi = new VirtApi(site, binaries.virtApi);
    await virtApi.launch();
    const plane = await startControlPlaneOn(site, binaries.controlplane);
    progress(`kube-apiserver is ready on ${plane.server}`);
    startScheduler(plane, binaries.controlplane);
    const manifests = await generateManifests(binaries.virtController);
    await createAll(plane.client, await readManifests(join(import.meta.dirname, 'manifests', 'namespaces.yaml')));
    await Promise.all([createKinds(plane.client, manifests.crds), grantRights(plane, manifests)]);
    progress('all kinds are served');
    startControllerManager(plane, binaries.controlplane);
    const switches = new Switches();
    const nodes = Array.from({ length: options.nodes ?? 2 }, (_, index) => `node-${index + 1}`);
    simulation = await startSimulation(plane, nodes, switches);
    progress(`${nodes.length} simulated nodes are ready`);
    await Promise.all([
      deployKubeVirt(plane),
      virtApi.connect(plane, manifests),
      startVirtController(plane, binaries.virtController),
    ]);
    progress('KubeVirt is ready');
    return bedOf(plane, nodes, switches, simulation);
  } catch (error) {
    await simulation?.stop();
    await site.abandon();
    throw error;
  }
}

function bedOf(plane: ControlPlane, nodes: string[], switches: Switches, simulation: Simulation): Bed {
  const { etcd, ...rest } = plane;
  return {
    ...rest,
    nodes,
    switches,
    serviceAccountKubeconfig: (namespace, name, binding) =>
      writeServiceAccountKubeconfig(plane, { namespace, name }, binding),
    etcdCompact: () => etcd.compact(),
    stop: async () => {
      await simulation.stop();
      await plane.stop();
    },
  };
}
