import { once } from 'node:events';
import { createServer, request as forward, Agent } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface WriteProxyOptions {
  /** Base URL of the API server. */
  readonly upstream: string;
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  /** The writes to count, by method and path. */
  readonly counts: (method: string, path: string) => boolean;
  /**
   * Called after the API server has carried out the n-th counted write (from 1), before its answer is forwarded. A crash at this
   * moment leaves a write of which its author does not know.
   */
  readonly onWrite: (n: number, what: string) => Promise<void> | void;
}

export interface WriteProxy {
  readonly url: string;
  readonly writes: readonly string[];
  close(): Promise<void>;
}

/** Forwards the requests of one client to the API server, and counts its writes. */
export async function startWriteProxy(options: WriteProxyOptions): Promise<WriteProxy> {
  const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });
  const writes: string[] = [];
  const pass = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const { method = 'GET', url = '/', headers } = incoming;
    const counted = method !== 'GET' && options.counts(method, url);
    const upstream = forward(new URL(url, options.upstream), { method, headers, agent }, (answer) => {
      const reply = () => {
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        // a watch may have no event for a long time
        outgoing.flushHeaders();
        answer.pipe(outgoing);
      };
      if (!counted || (answer.statusCode ?? 500) >= 300) {
        reply();
        return;
      }
      writes.push(`${method} ${url}`);
      void Promise.resolve(options.onWrite(writes.length, `${method} ${url}`)).then(reply);
    });
    upstream.on('error', () => outgoing.destroy());
    outgoing.on('close', () => upstream.destroy());
    incoming.pipe(upstream);
  };
  const server = createServer({ cert: options.certificate, key: options.key }, pass);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    url: `https://127.0.0.1:${String((server.address() as AddressInfo).port)}`,
    writes,
    close: async () => {
      server.closeAllConnections();
      agent.destroy();
      await once(server.close(), 'close');
    },
  };
}
