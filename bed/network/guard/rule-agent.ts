import { mkdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';

export interface PortAnswer {
  /** With prefix lengths. */
  readonly addresses: readonly string[];
  /** Rules of the plugin. */
  readonly guard?: object;
}

/** Stands for the agent of a node: it answers every ADD of our plugin in the same way until it is closed. @param folder the node's `/run/holdfast` */
export async function answerAdds(folder: string, current: () => PortAnswer): Promise<Server> {
  await mkdir(folder, { recursive: true });
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (data) => {
      text += String(data);
      if (!text.endsWith('\n')) return;
      const { env } = JSON.parse(text) as { env: Record<string, string> };
      socket.end(JSON.stringify(env.CNI_COMMAND === 'ADD' ? resultOf(current()) : { exit: 0, output: '' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(join(folder, 'agent.sock'), resolve));
  return server;
}

function resultOf({ addresses, guard }: PortAnswer): object {
  const output = JSON.stringify({ cniVersion: '1.0.0', ips: addresses.map((address) => ({ address })) });
  return { exit: 0, output, ...(guard && { guard }) };
}
