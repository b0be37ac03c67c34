import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { connect, createServer, type ListenOptions, type NetConnectOpts, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { ControlPlane } from '../control-plane/control-plane.js';

/** A Unix socket, which processes inside and outside of network namespaces reach, and the port of 127.0.0.1 that leads to it. */
export interface Gate {
  readonly socket: string;
  readonly port: number;
}

/** Connects each client of an address with another address. */
export async function forward(from: ListenOptions, to: NetConnectOpts): Promise<Server> {
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const target = connect({ ...to, allowHalfOpen: true });
    client.on('error', () => target.destroy()).pipe(target);
    target.on('error', () => client.destroy()).pipe(client);
  });
  await once(server.listen(from), 'listening');
  return server;
}

/** Lets the machine's processes reach the API server of a namespace. @returns the path of a kubeconfig for them */
export async function openGate(
  plane: Pick<ControlPlane, 'server' | 'kubeconfig'>,
  { socket, port }: Gate,
): Promise<string> {
  const server = await forward(
    { path: socket },
    { host: '127.0.0.1', port: Number(new URL(plane.server).port || 443) },
  );
  server.unref();
  const path = join(dirname(plane.kubeconfig), 'host.kubeconfig');
  const text = await readFile(plane.kubeconfig, 'utf8');
  await writeFile(path, text.replace(plane.server, `https://127.0.0.1:${String(port)}`), { mode: 0o600 });
  return path;
}
