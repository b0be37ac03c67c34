import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Server, createServer, request as forward } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { Bed } from '../bed.js';

/** A request that is not a GET, and its answer. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly request: unknown;
  readonly response: unknown;
}

/** Passes HTTPS requests on, and records those that write. */
export class RecordingProxy {
  readonly exchanges: Exchange[] = [];
  readonly #server: Server;
  readonly #upstream: string;

  private constructor(upstream: string, tls: { cert: Buffer; key: Buffer }) {
    this.#upstream = upstream;
    this.#server = createServer(tls, (incoming, outgoing) => void this.#pass(incoming, outgoing));
  }

  static async open({ certificates }: Bed, upstream: string): Promise<RecordingProxy> {
    const [cert, key] = await Promise.all([readFile(certificates.servingCert), readFile(certificates.servingKey)]);
    const proxy = new RecordingProxy(upstream, { cert, key });
    await once(proxy.#server.listen(0, '127.0.0.1'), 'listening');
    return proxy;
  }

  get url(): string {
    return `https://127.0.0.1:${String((this.#server.address() as AddressInfo).port)}`;
  }

  /** Writes a copy of a kubeconfig that leads through this proxy. @returns its path */
  async redirect(kubeconfig: string): Promise<string> {
    const path = `${kubeconfig}-recorded`;
    const text = await readFile(kubeconfig, 'utf8');
    await writeFile(path, text.replaceAll(this.#upstream, this.url), { mode: 0o600 });
    return path;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await once(this.#server.close(), 'close');
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { method = 'GET', url: path = '/', headers } = incoming;
    try {
      const sent = await buffer(incoming);
      const upstream = forward(new URL(path, this.#upstream), { method, headers, rejectUnauthorized: false });
      outgoing.once('close', () => upstream.destroy());
      upstream.end(sent);
      const [answer] = (await once(upstream, 'response')) as [IncomingMessage];
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      outgoing.flushHeaders(); // a watch may have no event for a long time
      if (method === 'GET') {
        answer.on('error', () => outgoing.destroy()).pipe(outgoing);
        return;
      }
      const received = await buffer(answer);
      this.exchanges.push({ method, path, request: parse(sent), response: parse(received) });
      outgoing.end(received);
    } catch {
      outgoing.destroy();
    }
  }
}

function parse(body: Buffer): unknown {
  return JSON.parse(body.toString('utf8'));
}
