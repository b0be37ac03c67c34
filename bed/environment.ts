import { type Bed, startBed } from './bed.js';
import { findFreePorts } from './processes/ports.js';
import { Agents } from './holdfast/agents.js';
import { buildHoldfast, installHoldfast } from './holdfast/install.js';
import { HoldfastProcess } from './holdfast/process.js';
import { type RealCluster, type RealClusterOptions, startRealCluster } from './real-nodes/real-cluster.js';
import { Client } from '../kube/client.js';
import { loadCredentials } from '../kube/transport/credentials.js';
import { Transport } from '../kube/transport/transport.js';

/** The cluster that the suites test, with KubeVirt, Multus and Holdfast. */
export interface Environment {
  /** With the rights of a cluster administrator. */
  readonly client: Client;
  /** Path of the admin's kubeconfig. */
  readonly kubeconfig: string;
  /** Undefined on a cluster with real nodes. */
  readonly bed: BedWithHoldfast | undefined;
  /** The cluster with real nodes that `BED_NODES=real` starts. */
  readonly realCluster?: RealCluster;
  stop(): Promise<void>;
}

export interface BedWithHoldfast extends Bed {
  readonly controller: HoldfastProcess;
  readonly webhook: HoldfastProcess;
  readonly ipam: HoldfastProcess;
  /** Undefined if pod networks are simulated, because then no CNI plugin runs. */
  readonly agents: Agents | undefined;
}

const hasRealNodes = process.env.BED_NODES === 'real';

/** Whether the suites run on a bed with simulated nodes. */
export const onBed = process.env.E2E_KUBECONFIG === undefined && !hasRealNodes;

/**
 * The cluster that `E2E_KUBECONFIG` names, where Holdfast is installed already; with `BED_NODES=real`, a cluster with real nodes;
 * otherwise a bed that runs Holdfast.
 * @param options.overlay changes what is installed on real nodes
 */
export async function startEnvironment(
  progress: (line: string) => void,
  { overlay, ...options }: { isBuilt?: boolean } & Pick<RealClusterOptions, 'overlay'> = {},
): Promise<Environment> {
  const kubeconfig = process.env.E2E_KUBECONFIG;
  if (kubeconfig !== undefined) {
    const transport = new Transport(await loadCredentials({ kubeconfig }));
    return { client: new Client(transport), kubeconfig, bed: undefined, stop: () => transport.close() };
  }
  if (hasRealNodes) {
    const withGuests = process.env.BED_GUESTS !== undefined;
    const cluster = await startRealCluster({ progress, withGuests, ...(overlay && { overlay }) });
    return {
      bed: undefined,
      client: cluster.client,
      kubeconfig: cluster.kubeconfig,
      realCluster: cluster,
      stop: () => cluster.stop(),
    };
  }
  const bed = await startBedWithHoldfast(progress, options);
  return { client: bed.client, kubeconfig: bed.kubeconfig, bed, stop: () => bed.stop() };
}

/**
 * A bed on which the shipped manifests are applied and all processes are ready.
 * @param isBuilt skips the build, which would replace the files of processes that run
 */
export async function startBedWithHoldfast(
  progress: (line: string) => void,
  { isBuilt = false }: { isBuilt?: boolean } = {},
): Promise<BedWithHoldfast> {
  if (!isBuilt) await buildHoldfast();
  const bed = await startBed({ progress });
  try {
    const [webhookPort = 0, ipamPort = 0] = await findFreePorts(2);
    const ports = { webhook: webhookPort, ipam: ipamPort };
    await installHoldfast(bed, ports);
    const controller = new HoldfastProcess(bed, 'controller', ports);
    const webhook = new HoldfastProcess(bed, 'webhook', ports);
    const ipam = new HoldfastProcess(bed, 'ipam', ports);
    const agents = bed.wire && new Agents(bed, ports);
    await Promise.all([controller.start(), webhook.start(), ipam.start(), agents?.start()]);
    progress(`Holdfast: controller, webhook${agents ? ', ipam and agents' : ' and ipam'} are ready`);
    return Object.assign(bed, { controller, webhook, ipam, agents });
  } catch (error) {
    await bed.stop();
    throw error;
  }
}
