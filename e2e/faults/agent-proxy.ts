import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as forward, Agent, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { join } from 'node:path';
import type { Bed } from '../bed/bed.js';
import type { Agents } from '../holdfast/agents.js';
import { AGENTS_NAMESPACE } from '../holdfast/install.js';

/** Called after the API server has carried out a write, before its answer is forwarded. @param what method and path */
export type OnWrite = (what: string) => Promise<void> | undefined;

/** A proxy between the agent of a node and the API server, with which a test can cut or delay their connection. */
export class AgentProxy {
  /** The successful requests in order: method and path. */
  readonly requests: string[] = [];
  readonly #server: Server;
  readonly #upstream: string;
  readonly #agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  readonly #onWrite: OnWrite;
  /** Open watches. */
  readonly #watches = new Set<IncomingMessage>();
  #isCut = false;
  #isBlind = false;

  private constructor(upstream: string, tls: { cert: string; key: string }, onWrite: OnWrite) {
    this.#upstream = upstream;
    this.#onWrite = onWrite;
    this.#server = createServer(tls, (incoming, outgoing) => this.#pass(incoming, outgoing));
    this.#server.on('connection', (socket: Socket) => {
      if (this.#isCut) socket.destroy();
    });
  }

  static async open(bed: Bed, onWrite: OnWrite = () => undefined): Promise<AgentProxy> {
    const { servingCert, servingKey } = bed.certificates;
    const [cert, key] = await Promise.all([readFile(servingCert, 'utf8'), readFile(servingKey, 'utf8')]);
    const line = new AgentProxy(bed.server, { cert, key }, onWrite);
    await once(line.#server.listen(0, '127.0.0.1'), 'listening');
    return line;
  }

  get url(): string {
    return `https://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** Writes so far. */
  get writes(): readonly string[] {
    return this.requests.filter((what) => !what.startsWith('GET '));
  }

  /** Closes all connections and rejects new ones. */
  disconnect(): void {
    this.#isCut = true;
    this.#server.closeAllConnections();
  }

  reconnect(): void {
    this.#isCut = false;
  }

  /** Holds back the events of watches; all other requests are answered. */
  pauseWatches(): void {
    this.#isBlind = true;
    for (const watch of this.#watches) watch.pause();
  }

  /** Delivers the events that were held back. */
  resumeWatches(): void {
    this.#isBlind = false;
    for (const watch of this.#watches) watch.resume();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await once(this.#server.close(), 'close');
  }

  #pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url = '/', headers } = incoming;
    const upstream = forward(new URL(url, this.#upstream), { method, headers, agent: this.#agent }, (answer) => {
      void this.#answer(`${method} ${url}`, answer, outgoing);
    });
    upstream.on('error', () => outgoing.destroy());
    outgoing.on('close', () => upstream.destroy());
    incoming.pipe(upstream);
  }

  async #answer(what: string, answer: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const status = answer.statusCode ?? 502;
    if (status < 300) {
      this.requests.push(what);
      if (!what.startsWith('GET ')) await this.#onWrite(what);
    }
    outgoing.writeHead(status, answer.headers);
    outgoing.flushHeaders(); // a watch may have no event for a long time
    if (what.includes('watch=true')) this.#passWatch(answer, outgoing);
    else answer.pipe(outgoing);
  }

  #passWatch(answer: IncomingMessage, outgoing: ServerResponse): void {
    this.#watches.add(answer);
    answer.on('close', () => this.#watches.delete(answer));
    answer.on('data', (chunk: Buffer) => outgoing.write(chunk));
    answer.on('end', () => outgoing.end());
    answer.on('error', () => outgoing.destroy());
    if (this.#isBlind) answer.pause();
  }
}

export interface AgentProxyOptions {
  readonly bed: Bed;
  readonly agents: Agents;
  readonly node: string;
  /** More flags for the agent. */
  readonly args?: readonly string[];
  readonly onWrite?: OnWrite;
}

/** An agent that reaches the API server through a proxy. */
export interface ProxiedAgent {
  readonly proxy: AgentProxy;
  /** Starts the agent, and waits until it is ready. */
  readonly start: () => Promise<void>;
  readonly launch: () => Promise<void>;
}

/** Runs a test while the agent of a node reaches the API server only through a proxy. Afterwards the agent runs as before. */
export async function withAgentProxy(
  options: AgentProxyOptions,
  run: (agent: ProxiedAgent) => Promise<void>,
): Promise<void> {
  const { bed, agents, node, args = [], onWrite } = options;
  const agent = agents.on(node);
  const proxy = await AgentProxy.open(bed, onWrite);
  const binding = { node };
  const account = await bed.serviceAccountKubeconfig(AGENTS_NAMESPACE, 'holdfast-agent', binding);
  const kubeconfig = join(bed.workDir, `agent-${node}-behind-line.kubeconfig`);
  const direct = await readFile(account, 'utf8');
  await writeFile(kubeconfig, direct.replaceAll(bed.server, proxy.url), { mode: 0o600 });
  try {
    await agent.stop();
    await agent.start({ kubeconfig, args });
    await run({
      proxy,
      start: () => agent.start({ kubeconfig, args }),
      launch: () => agent.launch({ kubeconfig, args }),
    });
  } finally {
    await agent.stop();
    await proxy.close();
    await agent.start();
  }
}
