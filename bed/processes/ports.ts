import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';

/**
 * Below the ephemeral ports of outgoing connections. kube-apiserver opens hundreds of these to etcd, and one of them may take a
 * free port before its user listens on it.
 */
const [LOWEST, HIGHEST] = (process.env.BED_PORTS?.split('-').map(Number) ?? [20_000, 32_000]) as [number, number];
const ATTEMPTS = 3;

/** Ports of earlier calls, because a process may not listen on its port yet. */
const issued = new Set<number>();
const MAX_ISSUED = (HIGHEST - LOWEST) / 2;

/** Returns `count` different free TCP ports of 127.0.0.1, none of which an earlier call has returned. */
export async function findFreePorts(count: number): Promise<number[]> {
  if (issued.size > MAX_ISSUED) issued.clear();
  const held = new Map<number, Server>();
  while (held.size < count) {
    const port = randomInt(LOWEST, HIGHEST);
    if (issued.has(port)) continue;
    issued.add(port);
    const server = await listenOn(port);
    if (server) held.set(port, server);
  }
  await Promise.all([...held.values()].map((server) => once(server.close(), 'close')));
  return [...held.keys()];
}

/** Runs `use` with free ports, and again with others if it fails because another process took one meanwhile. */
export async function withFreePorts<T>(count: number, use: (ports: number[]) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await use(await findFreePorts(count));
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes('address already in use');
      if (!isTaken || attempt === ATTEMPTS) throw error;
    }
  }
}

async function listenOn(port: number): Promise<Server | undefined> {
  const server = createServer().listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
    return server;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
}
