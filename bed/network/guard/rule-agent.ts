import { mkdir } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';

export interface PortAnswer {
  /** With prefix lengths. */
  readonly addresses: readonly string[];
  /** Rules of the plugin. */
  readonly guard?: object;
}

/**
 * Stands for the agent of a node: it answers every ADD of our plugin until it is closed.
 * @param folder the node's `/run/holdfast`
 * @param answerFor the answer on the network of this name
 */
export async function answerAdds(folder: string, answerFor: (network: string) => PortAnswer): Promise<Server> {
  await mkdir(folder, { recursive: true });
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    let text = '';
    socket.on('data', (data) => {
      text += String(data);
      if (!text.endsWith('\n')) return;
      const { env, config } = JSON.parse(text) as { env: Record<string, string>; config: string };
      const isAdd = env.CNI_COMMAND === 'ADD';
      socket.end(JSON.stringify(isAdd ? resultOf(answerFor(nameIn(config))) : { exit: 0, output: '' }));
    });
  });
  await new Promise<void>((resolve) => server.listen(join(folder, 'agent.sock'), resolve));
  return server;
}

function nameIn(config: string): string {
  return (JSON.parse(config) as { name: string }).name;
}

function resultOf({ addresses, guard }: PortAnswer): object {
  const output = JSON.stringify({ cniVersion: '1.0.0', ips: addresses.map((address) => ({ address })) });
  return { exit: 0, output, ...(guard && { guard }) };
}
