import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, request as forward, Agent, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import type { Bed } from '../bed.js';
import type { Agents } from '../holdfast/agents.js';
import type { HoldfastProcess } from '../holdfast/process.js';

/** Called after the API server has carried out a write, before its answer is forwarded. @param what method and path */
type OnWrite = (what: string) => Promise<void> | undefined;

/** A request that is not a GET, and its answer. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly request: unknown;
  readonly response: unknown;
}

interface Connection {
  readonly upstream: string;
  readonly onWrite?: OnWrite | undefined;
  readonly onExchange?: (exchange: Exchange) => void;
}

/** A proxy between a process and the API server, with which a test can cut, delay or record their connection. */
export class ApiProxy {
  /** The successful requests in order: method and path. */
  readonly requests: string[] = [];
  readonly #server: Server;
  readonly #connection: Connection;
  readonly #agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  /** Open watches. */
  readonly #watches = new Map<IncomingMessage, string>();
  #isCut = false;
  #isBlind = false;

  private constructor(tls: { cert: string; key: string }, connection: Connection) {
    this.#connection = connection;
    this.#server = createServer(tls, (incoming, outgoing) => this.#pass(incoming, outgoing));
    this.#server.on('connection', (socket: Socket) => {
      if (this.#isCut) socket.destroy();
    });
  }

  /** @param connection by default with the API server */
  static async open({ certificates, server }: Bed, connection: Partial<Connection> = {}): Promise<ApiProxy> {
    const { servingCert, servingKey } = certificates;
    const [cert, key] = await Promise.all([readFile(servingCert, 'utf8'), readFile(servingKey, 'utf8')]);
    const proxy = new ApiProxy({ cert, key }, { upstream: server, ...connection });
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** Writes a kubeconfig with the credentials of another one, which names the proxy. @returns its path */
  async kubeconfig(direct: string): Promise<string> {
    const path = `${direct}-through-proxy`;
    await writeFile(path, (await readFile(direct, 'utf8')).replaceAll(this.#connection.upstream, this.url), {
      mode: 0o600,
    });
    return path;
  }

  /** Writes so far. */
  get writes(): readonly string[] {
    return this.requests.filter((what) => !what.startsWith('GET '));
  }

  /** The kinds of the open watches, in the plural and sorted. */
  get watched(): string[] {
    const kinds = [...this.#watches.values()].map((what) => /\/([^/?]+)\?/.exec(what)?.[1] ?? what);
    return [...new Set(kinds)].sort();
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
    for (const watch of this.#watches.keys()) watch.pause();
  }

  /** Delivers the events that were held back. */
  resumeWatches(): void {
    this.#isBlind = false;
    for (const watch of this.#watches.keys()) watch.resume();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await once(this.#server.close(), 'close');
  }

  #pass(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { method = 'GET', url: path = '/', headers } = incoming;
    const request = bodyOf(incoming);
    const options = { method, headers, agent: this.#agent };
    const upstream = forward(new URL(path, this.#connection.upstream), options, (answer) => {
      void this.#answer({ method, path, request }, answer, outgoing);
    });
    upstream.on('error', () => outgoing.destroy());
    outgoing.on('close', () => upstream.destroy());
    incoming.pipe(upstream);
  }

  async #answer(
    { method, path, request }: { method: string; path: string; request: () => unknown },
    answer: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<void> {
    const { onWrite, onExchange } = this.#connection;
    const status = answer.statusCode ?? 502;
    const what = `${method} ${path}`;
    if (status < 300) {
      this.requests.push(what);
      if (method !== 'GET') await onWrite?.(what);
    }
    outgoing.writeHead(status, answer.headers);
    outgoing.flushHeaders(); // a watch may have no event for a long time
    if (what.includes('watch=true')) {
      this.#passWatch(what, answer, outgoing);
      return;
    }
    if (method !== 'GET' && onExchange !== undefined) {
      const response = bodyOf(answer);
      answer.on('end', () => onExchange({ method, path, request: request(), response: response() }));
    }
    answer.pipe(outgoing);
  }

  #passWatch(what: string, answer: IncomingMessage, outgoing: ServerResponse): void {
    this.#watches.set(answer, what);
    answer.on('close', () => this.#watches.delete(answer));
    answer.on('data', (chunk: Buffer) => outgoing.write(chunk));
    answer.on('end', () => outgoing.end());
    answer.on('error', () => outgoing.destroy());
    if (this.#isBlind) answer.pause();
  }
}

/** Collects the body of a message, whose stream is also read elsewhere. */
function bodyOf(message: IncomingMessage): () => unknown {
  const chunks: Buffer[] = [];
  message.on('data', (chunk: Buffer) => chunks.push(chunk));
  return () => JSON.parse(Buffer.concat(chunks).toString('utf8')) as unknown;
}

export interface ProxyOptions {
  readonly bed: Bed;
  readonly process: HoldfastProcess;
  /** More flags for the process. */
  readonly args?: readonly string[];
  readonly onWrite?: OnWrite;
}

/** A process that reaches the API server through a proxy. */
export interface ProxiedProcess {
  readonly proxy: ApiProxy;
  /** Starts the process, and waits until it is ready. */
  readonly start: () => Promise<void>;
  readonly launch: () => Promise<void>;
}

/** Runs a test while a process reaches the API server only through a proxy. Afterwards the process runs as before. */
export async function withProxy(
  { bed, process, args = [], onWrite }: ProxyOptions,
  run: (proxied: ProxiedProcess) => Promise<void>,
): Promise<void> {
  const proxy = await ApiProxy.open(bed, { onWrite });
  const kubeconfig = await proxy.kubeconfig(await process.ownKubeconfig());
  const start = () => process.start({ kubeconfig, args });
  try {
    await process.stop();
    await start();
    await run({ proxy, start, launch: () => process.launch({ kubeconfig, args }) });
  } finally {
    await process.stop();
    await proxy.close();
    await process.start();
  }
}

/** {@link withProxy} for the agent of a node. */
export function withAgentProxy(
  { agents, node, ...options }: Omit<ProxyOptions, 'process'> & { agents: Agents; node: string },
  run: (proxied: ProxiedProcess) => Promise<void>,
): Promise<void> {
  return withProxy({ ...options, process: agents.on(node) }, run);
}
