import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '../../bed/control-plane/control-plane.js';
import { createCrds, kubeVirtKind } from '../../bed/control-plane/crds.js';
import { KUBEVIRT_NAMESPACE } from '../../bed/control-plane/kubevirt.js';
import { type Manifest, createAll } from '../../bed/control-plane/objects.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import { capture } from '../../bed/processes/processes.js';
import { clusterRoleBindingOf, writeServiceAccountKubeconfig } from '../../bed/control-plane/service-accounts.js';
import { HOLDFAST_NAMESPACE, endpointOf, withoutSelector } from '../../bed/holdfast/install.js';
import { applyManifests, readInstallation } from '../../bed/holdfast/manifests.js';
import { AddressStory } from '../../bed/story/addresses.js';
import { clientAs } from '../../bed/story/users/service-account.js';
import type { Client } from '../../kube/client.js';
import { AGENT_ACCOUNT, AgentOfNode, startHoldfast } from './agent.js';
import { PluginCaller } from './plugin-caller.js';

export const NAMESPACE = 'bench';
const NODES = 10;
/** Kinds that run pods, or need a process that does not run here. */
const LEFT_OUT = new Set([
  'Deployment',
  'DaemonSet',
  'PodDisruptionBudget',
  'NetworkPolicy',
  'MutatingWebhookConfiguration',
]);
const IPAM = { namespace: HOLDFAST_NAMESPACE, name: 'holdfast-ipam' };
const VIRT_CONTROLLER = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt-controller' };

/** A node that runs only the agent. */
export interface BenchNode {
  readonly agent: AgentOfNode;
  /** A client with the agent's identity, so that the baseline passes the same admission. */
  readonly client: Client;
}

/** An API server with Holdfast's manifests, ipam, and nodes with agents, and nothing else. */
export interface CniCluster {
  readonly plane: ControlPlane;
  readonly addresses: AddressStory;
  readonly ipam: Client;
  /** The only user that may create launchers. */
  readonly virtController: Client;
  readonly nodes: readonly BenchNode[];
  readonly caller: PluginCaller;
  /** Starts processes that do nothing, for baselines. */
  readonly nothing: PluginCaller;
  stop(): Promise<void>;
}

export async function startCniCluster(progress: (line: string) => void): Promise<CniCluster> {
  await capture(process.execPath, ['build.js']);
  const plane = await startControlPlane({ progress });
  const runDirs = await mkdtemp('/dev/shm/holdfast-bench-');
  const stop = async () => {
    await plane.stop();
    await rm(runDirs, { recursive: true, force: true });
  };
  try {
    const names = Array.from({ length: NODES }, (_, n) => `node-${String(n)}`);
    await install(plane, names);
    const agents = names.map((name) => new AgentOfNode(plane, name, join(runDirs, name)));
    await Promise.all(agents.map((agent) => agent.start()));
    const clientOf = (account: typeof IPAM, node?: string) => clientAs(plane, account, node ? { node } : undefined);
    const nodes = await Promise.all(
      agents.map(async (agent) => ({ agent, client: await clientOf(AGENT_ACCOUNT, agent.node) })),
    );
    const [ipam, virtController] = await Promise.all([clientOf(IPAM), clientOf(VIRT_CONTROLLER)]);
    const caller = await PluginCaller.start(plane.processes, progress);
    const nothing = await PluginCaller.startForNothing(plane.processes, progress);
    progress(`${String(NODES)} agents are ready`);
    const close = async () => {
      const clients = [ipam, virtController, ...nodes.map(({ client }) => client)];
      await Promise.all(clients.map(({ transport }) => transport.close()));
      await stop();
    };
    const addresses = new AddressStory(plane, NAMESPACE);
    return { plane, addresses, ipam, virtController, nodes, caller, nothing, stop: close };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function install(plane: ControlPlane, nodes: readonly string[]): Promise<void> {
  const { client } = plane;
  const kinds = { kubevirts: 'KubeVirt', virtualmachines: 'VirtualMachine' };
  const instances = { virtualmachineinstances: 'VirtualMachineInstance' };
  const crds = Object.entries({ ...kinds, ...instances }).map(([plural, kind]) => kubeVirtKind(plural, kind));
  await createCrds(client, crds);
  const [validation = 0] = await findFreePorts(1);
  const shipped = (await readInstallation()).filter(({ kind }) => !LEFT_OUT.has(kind));
  await applyManifests(client, [...shipped.map(withoutSelector), endpointOf(IPAM.name, validation)]);
  await createAll(client, [...surroundings(), ...nodes.map((name) => core('Node', { name }))]);
  await startIpam(plane, validation);
}

/** Objects that pods and virt-controller need. The permissions of virt-controller do not matter here. */
function surroundings(): Manifest[] {
  return [
    ...[NAMESPACE, KUBEVIRT_NAMESPACE].map((name) => core('Namespace', { name })),
    core('ServiceAccount', { namespace: NAMESPACE, name: 'default' }),
    core('ServiceAccount', VIRT_CONTROLLER),
    { apiVersion: 'kubevirt.io/v1', kind: 'KubeVirt', metadata: { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt' } },
    clusterRoleBindingOf(VIRT_CONTROLLER, 'cluster-admin'),
  ];
}

function core(kind: string, metadata: { namespace?: string; name: string }): Manifest {
  return { apiVersion: 'v1', kind, metadata };
}

async function startIpam(plane: ControlPlane, validation: number): Promise<void> {
  const [metrics = 0] = await findFreePorts(1);
  const kubeconfig = await writeServiceAccountKubeconfig(plane, IPAM);
  const flags = [`--kubeconfig=${kubeconfig}`, `--validation-bind-address=127.0.0.1:${String(validation)}`];
  await startHoldfast(plane, 'ipam', ['ipam', ...flags], metrics);
}
