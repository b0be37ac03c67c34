import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type ListenOptions, type NetConnectOpts, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { ControlPlane } from '../control-plane/control-plane.js';

/** A Unix socket in the temporary folder of a network namespace's processes, which processes outside reach, too. */
export function gateSocket(folder: string): string {
  return join(folder, 'api');
}

/** Connects each client of an address with another address, which is read when the client comes. */
export async function forward(from: ListenOptions, to: NetConnectOpts): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ ...to, allowHalfOpen: true });
    client.on('error', () => target.destroy()).pipe(target);
    target.on('error', () => client.destroy()).pipe(client);
  });
  await once(server.listen(from), 'listening');
  return server;
}

/**
 * Lets the machine's processes reach the API server of a namespace.
 * @param port of 127.0.0.1 outside, whose clients reach {@link gateSocket}
 * @returns the path of a kubeconfig for them
 */
export async function openGate(plane: Pick<ControlPlane, 'server' | 'kubeconfig'>, port: number): Promise<string> {
  const server = await forward(
    { path: gateSocket(tmpdir()) },
    { host: '127.0.0.1', port: Number(new URL(plane.server).port || 443) },
  );
  server.unref();
  const path = join(dirname(plane.kubeconfig), 'host.kubeconfig');
  const text = await readFile(plane.kubeconfig, 'utf8');
  await writeFile(path, text.replace(plane.server, `https://127.0.0.1:${String(port)}`), { mode: 0o600 });
  return path;
}
