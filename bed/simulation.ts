import { join } from 'node:path';
import pino from 'pino';
import { Client } from '../kube/client.js';
import { systemClock } from '../kube/clock.js';
import { loadCredentials } from '../kube/transport/credentials.js';
import { Transport } from '../kube/transport/transport.js';
import type { ControlPlane } from './control-plane/control-plane.js';
import { VIRT_HANDLER } from './control-plane/kubevirt.js';
import type { GuestNetworks, SandboxNetworks } from './node/sandbox-networks.js';
import { SimulatedNetworks } from './node/simulated-networks.js';
import { SimulatedNodes } from './node/simulated-nodes.js';
import { writeServiceAccountKubeconfig } from './control-plane/service-accounts.js';
import type { Switches } from './switches.js';

export interface Simulation {
  /** Makes the kubelets look at all of their pods. */
  resync(): void;
  stop(): Promise<void>;
}

export interface SimulationOptions {
  /** Names of the nodes. */
  readonly names: readonly string[];
  readonly switches: Switches;
  /** Real pod networks; by default they are simulated too. */
  readonly networks?: (SandboxNetworks & GuestNetworks) | undefined;
}

/** Starts the simulated nodes in this process, with virt-handler's identity, and waits until they are Ready. */
export async function startSimulation(plane: ControlPlane, options: SimulationOptions): Promise<Simulation> {
  const kubeconfig = await writeServiceAccountKubeconfig(plane, VIRT_HANDLER);
  const transport = new Transport(await loadCredentials({ kubeconfig }));
  const handlerClient = new Client(transport);
  const log = pino(
    { base: null, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ dest: join(plane.logDir, 'nodes.log'), sync: true }),
  );
  const nodes = new SimulatedNodes({
    ...options,
    networks: options.networks ?? new SimulatedNetworks(plane.client),
    client: plane.client,
    handlerClient,
    clock: systemClock,
    log,
  });
  const stop = async () => {
    await nodes.stop();
    await transport.close();
  };
  try {
    await nodes.start();
  } catch (error) {
    await stop();
    throw error;
  }
  return { stop, resync: () => nodes.resync() };
}
