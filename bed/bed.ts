import { ensureBinaries, type Progress } from './build/binaries.js';
import type { ControlPlane } from './control-plane/control-plane.js';
import { startKubeVirtPlane } from './control-plane/kubevirt-plane.js';
import { type TokenBinding, writeServiceAccountKubeconfig } from './control-plane/service-accounts.js';
import { cniBinFolder, openPodNetworks } from './network/open-pod-networks.js';
import type { RuntimeArgs } from './network/multus.js';
import { noRealNetworks, openWire, type Wire } from './network/wire.js';
import { BedWire } from './node/bed-wire.js';
import { writePluginStubs } from './node/plugin-stubs.js';
import { WiredNetworks } from './node/wired-networks.js';
import { startSimulation } from './simulation.js';
import type { WorkspaceOptions } from './control-plane/workspace.js';
import { Switches } from './switches.js';

export interface BedOptions extends WorkspaceOptions {
  /** `simulated`: no real pod networks. By default pods have them if the machine allows it. */
  network?: 'simulated';
  /** Number of simulated nodes; 2 by default, which live migration needs. */
  nodes?: number;
  /** CNI_ARGS of the runtime; those of containerd by default. */
  argsOf?: RuntimeArgs;
  progress?: Progress;
}

/** A KubeVirt cluster on loopback: real control planes of Kubernetes and KubeVirt, and simulated nodes. */
export interface Bed extends Omit<ControlPlane, 'etcd'> {
  readonly nodes: readonly string[];
  /** Changes how the simulated nodes behave. */
  readonly switches: Switches;
  /** The real networks of pods; undefined if they are simulated. */
  readonly wire: BedWire | undefined;
  /** Writes a kubeconfig with a new token of a service account, bound to a node if one is named. @returns its path */
  serviceAccountKubeconfig(namespace: string, name: string, binding?: TokenBinding): Promise<string>;
  /** See {@link Etcd.compact}. If the API server restarts after it, older watches end with 410 Gone. */
  etcdCompact(): Promise<void>;
}

/**
 * Starts a bed. Several beds may run at once.
 * @throws {Error} with the end of the log of a process that exited; all other processes are stopped then
 */
export async function startBed(options: BedOptions = {}): Promise<Bed> {
  const progress = options.progress ?? (() => undefined);
  const isSimulated = options.network === 'simulated';
  const binaries = await ensureBinaries(progress, !isSimulated && noRealNetworks() === undefined);
  const { plane, nodes } = await startKubeVirtPlane({
    ...options,
    ...{ binaries, progress },
    startNodes: async (started) => {
      const wire = isSimulated ? undefined : await openWire(started.processes, progress);
      const simulated = await startNodes(started, options, wire);
      progress(`${simulated.names.length} simulated nodes are ready${wire ? ', their pods on real networks' : ''}`);
      return simulated;
    },
  });
  return createBed(plane, nodes);
}

interface StartedNodes {
  readonly names: readonly string[];
  readonly switches: Switches;
  readonly wire: BedWire | undefined;
  stop(): Promise<void>;
}

async function startNodes(plane: ControlPlane, options: BedOptions, wire: Wire | undefined): Promise<StartedNodes> {
  const { nodes: count = 2, argsOf } = options;
  const switches = new Switches();
  const names = Array.from({ length: count }, (_, index) => `node-${index + 1}`);
  if (!wire) {
    const simulation = await startSimulation(plane, { names, switches });
    return { names, switches, wire, stop: () => simulation.stop() };
  }
  const networks = await openPodNetworks(plane, wire, { nodes: names, argsOf });
  const cniBin = cniBinFolder(plane);
  await writePluginStubs(cniBin);
  const simulation = await startSimulation(plane, { names, switches, networks: new WiredNetworks(wire, networks) });
  const stop = async () => {
    await wire.child.kill(); // ends all plugins and networks, so that nothing waits for them
    await simulation.stop();
  };
  return { names, switches, wire: new BedWire({ wire, networks, cniBin, resync: () => simulation.resync() }), stop };
}

function createBed(plane: ControlPlane, nodes: StartedNodes): Bed {
  const { etcd, ...rest } = plane;
  return {
    ...rest,
    nodes: nodes.names,
    switches: nodes.switches,
    wire: nodes.wire,
    serviceAccountKubeconfig: (namespace, name, binding) =>
      writeServiceAccountKubeconfig(plane, { namespace, name }, binding),
    etcdCompact: () => etcd.compact(),
  };
}
