import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { Progress } from '../build/binaries.js';
import { buildHoldfast } from '../holdfast/install.js';
import { forward, gateSocket } from './forwarder.js';
import { isolated, temporaryFolderOf } from './isolation.js';
import { prepareRealCluster } from './real-cluster.js';

/** The port of 127.0.0.1 outside that leads into a program that {@link runIsolated} runs. */
export function gateOfProgram(): number | undefined {
  const { BED_GATE: gate } = process.env;
  return gate === undefined ? undefined : Number(gate);
}

/**
 * Runs a program of this tree in namespaces of its own, where it may start real nodes. Builds and downloads before what they need.
 * @param program must handle SIGINT: it is process 1 there
 * @returns its status
 */
export async function runIsolated(program: string, args: readonly string[], progress: Progress): Promise<number> {
  await Promise.all([buildHoldfast(), prepareRealCluster(progress)]);
  const inside = { path: '' };
  const entrance = await forward({ host: '127.0.0.1', port: 0 }, inside);
  const { port } = entrance.address() as AddressInfo;
  const { command, args: all } = isolated({ command: process.execPath, args: ['--import=tsx', program, ...args] });
  const env = { ...process.env, BED_NODES: 'real', BED_GATE: String(port) };
  const child = spawn(command, all, { stdio: 'inherit', env });
  inside.path = gateSocket(temporaryFolderOf(child.pid ?? 0));
  const interrupt = () => child.kill('SIGINT');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  const [status] = (await once(child, 'exit')) as [number | null];
  entrance.close();
  return status ?? 1;
}
