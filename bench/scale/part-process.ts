import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { writeKubeconfig } from '../../bed/control-plane/kubeconfig.js';
import { type Workspace, openWorkspace } from '../../bed/control-plane/workspace.js';
import { nodeFlags } from '../../bed/holdfast/image.js';
import { findFreePorts } from '../../bed/processes/ports.js';
import { capture } from '../../bed/processes/processes.js';
import { until } from '../../bed/processes/wait.js';
import { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { nodeOfImage } from '../../test/image/node.js';
import type { Figure } from '../report.js';
import { MemoryApiServer } from './api-server.js';
import type { LongestBlocks } from './block-watch.js';

/** Probes and the renewal of the Lease wait so long. */
export const LONGEST_BLOCK_MS = 200;
export const READY_MS = 900_000;
const BLOCK_WATCH = join(import.meta.dirname, 'block-watch.ts');

/** The parts that cache what grows with the VMs. All replicas of the webhook work. */
export type PartName = 'controller' | 'ipam' | 'webhook' | 'guest';

export interface Served {
  readonly kubeconfig: string;
  readonly port: number;
  readonly workspace: Workspace;
  readonly tracker: ObjectTracker;
  readonly server: MemoryApiServer;
}

export async function withServer(measure: (served: Served) => Promise<Figure[]>): Promise<Figure[]> {
  await capture(process.execPath, ['build.js']);
  const workspace = await openWorkspace({});
  const [port = 0] = await findFreePorts(1);
  const tracker = new ObjectTracker();
  const { servingKey: key, servingCert: cert, caBundle } = workspace.certificates;
  const server = await MemoryApiServer.start(tracker, port, { key, cert });
  const access = { server: `https://127.0.0.1:${port}`, caBundle };
  const kubeconfig = await writeKubeconfig(join(workspace.workDir, 'kubeconfig'), access, 'token');
  try {
    return await measure({ kubeconfig, port, workspace, tracker, server });
  } finally {
    await server.stop();
    await workspace.close();
  }
}

export async function startPart(name: PartName, { kubeconfig, workspace }: Served, more: readonly string[] = []) {
  const [health = 0, metrics = 0, serving = 0] = await findFreePorts(3);
  const served = { controller: undefined, guest: undefined, ipam: 'validation', webhook: 'webhook' }[name];
  const certs = dirname(workspace.certificates.servingCert);
  const flags = [
    `--kubeconfig=${kubeconfig}`,
    `--health-bind-address=127.0.0.1:${health}`,
    `--metrics-bind-address=127.0.0.1:${metrics}`,
    '--metrics-secure=false',
    ...(name === 'webhook' ? [] : ['--leader-elect']),
    ...(served === undefined ? [] : [`--${served}-bind-address=127.0.0.1:${serving}`, `--${served}-cert-dir=${certs}`]),
    ...more,
  ];
  const args = [...(await nodeFlags()), `--import=${BLOCK_WATCH}`, 'dist/holdfast.js', name, ...flags];
  const BLOCKS_FILE = join(workspace.workDir, `${name}-${health}-blocks.json`);
  const child = workspace.processes.start({ name, command: await nodeOfImage(), args, env: { BLOCKS_FILE } });
  const isReady = async () => {
    child.assertRunning();
    return (await fetch(`http://127.0.0.1:${health}/readyz`)).ok;
  };
  const ready = () => until(`${name} to be ready`, isReady, { timeoutMs: READY_MS, everyMs: 100 });
  const longestBlocks = async () => JSON.parse(await readFile(BLOCKS_FILE, 'utf8')) as LongestBlocks;
  const urlOf = (port: number, path: string) => `http://127.0.0.1:${port}/${path}`;
  return { child, ready, longestBlocks, healthUrl: urlOf(health, 'healthz'), metricsUrl: urlOf(metrics, 'metrics') };
}
