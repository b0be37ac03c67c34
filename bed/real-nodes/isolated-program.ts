import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, rmdir } from 'node:fs/promises';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Progress } from '../build/binaries.js';
import { buildHoldfast } from '../holdfast/install.js';
import { forward, type Gate } from './forwarder.js';
import { isolated } from './isolation.js';
import { prepareRealCluster } from './real-cluster.js';

/** The gate of a program that {@link runIsolated} runs. */
export function gateOfProgram(): Gate | undefined {
  const { BED_GATE: gate } = process.env;
  return gate === undefined ? undefined : (JSON.parse(gate) as Gate);
}

/**
 * Runs a program of this tree in namespaces of its own, where it may start real nodes. Builds and downloads before what they need.
 * @param program must handle SIGINT: it is process 1 there
 * @returns its status
 */
export async function runIsolated(program: string, args: readonly string[], progress: Progress): Promise<number> {
  await buildHoldfast();
  await prepareRealCluster(progress);
  // The watchdog of a killed bed dies with the namespace, and removes nothing.
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-real-'));
  const socket = join(folder, 'api');
  const entrance = await forward({ host: '127.0.0.1', port: 0 }, { path: socket });
  const gate: Gate = { socket, port: (entrance.address() as AddressInfo).port };
  const { command, args: all } = isolated({ command: process.execPath, args: ['--import=tsx', program, ...args] });
  const env = { ...process.env, BED_NODES: 'real', BED_GATE: JSON.stringify(gate), TMPDIR: folder };
  const child = spawn(command, all, { stdio: 'inherit', env });
  const interrupt = () => child.kill('SIGINT');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, interrupt);
  const [status] = (await once(child, 'exit')) as [number | null];
  entrance.close();
  if (status === 0 || status === 130) await rm(folder, { recursive: true, force: true });
  else await rmdir(folder).catch(() => undefined); // logs of a failure stay
  return status ?? 1;
}
