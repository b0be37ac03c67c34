import { existsSync } from 'node:fs';
import { copyFile, mkdir, readdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Random } from '../../kube/clock.js';
import type { ControlPlane } from '../control-plane/control-plane.js';
import { createAll, readManifests } from '../control-plane/objects.js';
import { writeServiceAccountKubeconfig } from '../control-plane/service-accounts.js';
import { Multus, type RuntimeArgs } from './multus.js';
import { PodNetworks } from './pod-networks.js';
import type { Wire } from './wire.js';

/** The file of our plugin in `dist/cni`. Its name ends with Go's name of the architecture. */
export const PLUGIN_FILE = `holdfast-linux-${process.arch === 'x64' ? 'amd64' : process.arch}`;
const OUR_PLUGIN = join(import.meta.dirname, '..', '..', 'dist', 'cni', PLUGIN_FILE);

/** Limit for all nodes together, because they share the machine. */
const CONCURRENT_PLUGINS = 8;

export interface NetworkOptions {
  readonly nodes: readonly string[];
  /** Source of container ids; Math.random by default. */
  readonly random?: Random;
  /** CNI_ARGS of the runtime; those of containerd by default. */
  readonly argsOf?: RuntimeArgs | undefined;
}

/**
 * Creates network namespaces for the nodes of a bed, and installs Multus. Pods have real networks from then on. A pod with
 * secondary networks needs the CRD of NetworkAttachmentDefinitions.
 */
export async function openPodNetworks(plane: ControlPlane, wire: Wire, options: NetworkOptions): Promise<PodNetworks> {
  await createAll(plane.client, await readManifests(join(import.meta.dirname, 'multus.yaml')));
  const kubeconfig = await writeServiceAccountKubeconfig(plane, { namespace: 'kube-system', name: 'multus' });
  const cniBin = await fillCniBin(cniBinFolder(plane), wire.binaries);
  const apiPort = Number(new URL(plane.server).port);
  const multus = new Map<string, Multus>();
  const { nodes, random = Math.random, argsOf } = options;
  const atOnce = Math.max(2, Math.floor(CONCURRENT_PLUGINS / nodes.length));
  for (const [index, node] of nodes.entries()) {
    const dir = nodeFolder(plane, node);
    await mkdir(dir, { recursive: true });
    await wire.addNode({ name: node, dir, apiPort });
    const podSubnet = `10.244.${index + 1}.0/24`;
    multus.set(
      node,
      new Multus({ wire, node, dir, podSubnet, cniBin, kubeconfig, logDir: plane.logDir, argsOf, concurrency: atOnce }),
    );
  }
  return new PodNetworks({ wire, client: plane.client, multus, random });
}

/** The folder of a node with `run-holdfast` and `var-lib-cni`, which are below /run and /var/lib on the node. */
export function nodeFolder(site: { dataDir: string }, node: string): string {
  return join(site.dataDir, 'nodes', node);
}

/** The folder of CNI plugins of all nodes. The next ADD finds a plugin that is added here. */
export function cniBinFolder(site: { dataDir: string }): string {
  return join(site.dataDir, 'cni-bin');
}

/** Links the other plugins, and copies ours because a build may remove it at any time. */
async function fillCniBin(folder: string, binaries: string): Promise<string> {
  await mkdir(folder, { recursive: true });
  for (const name of await readdir(binaries)) await symlink(join(binaries, name), join(folder, name));
  if (existsSync(OUR_PLUGIN)) await copyFile(OUR_PLUGIN, join(folder, 'holdfast'));
  return folder;
}
