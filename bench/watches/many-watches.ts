import { type ClientHttp2Session, connect } from 'node:http2';
import type { Credentials } from '../../kube/transport/credentials.js';

/** kube-apiserver allows 100 or more on each connection. */
const STREAMS_PER_CONNECTION = 100;
const OPENED_AT_ONCE = 50;

/** Watches that nobody reads further than the socket, many on each connection. */
export class ManyWatches {
  readonly #sessions: ClientHttp2Session[] = [];

  /** Resolves when the server has answered all of them. */
  static async open(credentials: Credentials, paths: readonly string[]): Promise<ManyWatches> {
    const watches = new ManyWatches();
    const [tls, headers] = [await credentials.tls(), await credentials.headers()];
    for (let from = 0; from < paths.length; from += STREAMS_PER_CONNECTION) {
      const session = connect(credentials.server, tls);
      // each of its streams gets the error too
      session.on('error', () => undefined);
      watches.#sessions.push(session);
      const some = paths.slice(from, from + STREAMS_PER_CONNECTION);
      for (let n = 0; n < some.length; n += OPENED_AT_ONCE) {
        const opened = some.slice(n, n + OPENED_AT_ONCE).map((path) => follow(session, { ...headers, ':path': path }));
        await Promise.all(opened);
      }
    }
    return watches;
  }

  close(): void {
    for (const session of this.#sessions) session.destroy();
  }
}

function follow(session: ClientHttp2Session, headers: Record<string, string | string[]>): Promise<void> {
  return new Promise((resolve, reject) => {
    const stream = session.request(headers);
    stream.on('response', ({ ':status': status }) => {
      if (status === 200) resolve();
      else reject(new Error(`the watch was answered with status ${String(status)}`));
    });
    stream.on('error', reject);
    stream.resume();
  });
}
