import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { StatusError } from '../../kube/errors.js';
import { type Resource, resourcePath } from '../../kube/resource.js';
import * as RESOURCES from '../../kube/resources.js';
import { MemoryTransport, targetOf } from '../../kube/testing/memory-transport.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { statusOf } from '../../kube/testing/refusals.js';
import type { ApiRequest, Query } from '../../kube/transport/transport.js';

/** `/api/v1` or `/apis/<group>/<version>` */
const GROUP = /^\/(api|apis\/[^/]+)\/[^/]+$/;

const [COMMA, END] = [Buffer.from(','), Buffer.from(']}')];

/** Serves the objects of a tracker over HTTPS. There is no admission. */
export class MemoryApiServer {
  /** Requests other than watches, by method and plural. */
  readonly requests = new Map<string, number>();
  readonly #api: MemoryTransport;
  /** Serialized objects, which never change. Real API servers have cores of their own for this. */
  readonly #json = new WeakMap<object, Buffer>();
  readonly #server: Server;

  private constructor(tracker: ObjectTracker, files: { key: Buffer; cert: Buffer }) {
    this.#api = new MemoryTransport(tracker);
    this.#server = createServer(files, (request, response) => void this.#answer(request, response));
    this.#server.keepAliveTimeout = 0;
  }

  static async start(
    tracker: ObjectTracker,
    port: number,
    files: { key: string; cert: string },
  ): Promise<MemoryApiServer> {
    const [key, cert] = await Promise.all([readFile(files.key), readFile(files.cert)]);
    const server = new MemoryApiServer(tracker, { key, cert });
    await new Promise<void>((resolve) => server.#server.listen(port, '127.0.0.1', resolve));
    return server;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  /** How many writes there were, without renewals of Leases. */
  get writes(): number {
    const counted = [...this.requests].filter(([kind]) => !/^GET | leases$/.test(kind));
    return counted.reduce((sum, [, count]) => sum + count, 0);
  }

  /** Serializes all objects, so that lists measure who reads them. */
  prepare(): void {
    for (const kind of Object.values<Resource>(RESOURCES))
      for (const object of this.#api.tracker.objects(kind).values()) this.#jsonOf(object);
  }

  #jsonOf(object: object): Buffer {
    const known = this.#json.get(object);
    if (known !== undefined) return known;
    const json = Buffer.from(JSON.stringify(object));
    this.#json.set(object, json);
    return json;
  }

  #serialize({ items, ...rest }: { items?: readonly object[] }): string | Buffer {
    if (items === undefined) return JSON.stringify(rest);
    const parts = items.flatMap((item) => [COMMA, this.#jsonOf(item)]);
    return Buffer.concat([Buffer.from(JSON.stringify({ ...rest, items: [] }).slice(0, -2)), ...parts.slice(1), END]);
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const request = await readRequest(incoming);
    try {
      if (request.query.watch === 'true') {
        await this.#watch(request, response);
        return;
      }
      if (GROUP.test(request.path)) {
        send(response, 200, JSON.stringify({ resources: kindsIn(request.path) }));
        return;
      }
      const kind = `${request.method} ${targetOf(request.path).kind.plural}`;
      this.requests.set(kind, (this.requests.get(kind) ?? 0) + 1);
      send(response, 200, this.#serialize(this.#api.serve(request) as object));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      send(response, error.status, JSON.stringify(statusOf(error)));
    }
  }

  async #watch({ path, query }: ApiRequest, response: ServerResponse): Promise<void> {
    const closed = new AbortController();
    response.once('close', () => closed.abort());
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const watch = { path, query, signal: closed.signal, idleMs: Infinity };
    for await (const event of this.#api.watch(watch)) response.write(`${JSON.stringify(event)}\n`);
    response.end();
  }
}

/** Discovery: every kind that Holdfast uses is served. */
function kindsIn(path: string): { name: string }[] {
  const kinds: Resource[] = Object.values(RESOURCES);
  return kinds.filter((kind) => resourcePath(kind).startsWith(`${path}/`)).map(({ plural }) => ({ name: plural }));
}

async function readRequest(incoming: IncomingMessage): Promise<ApiRequest & { query: Query }> {
  let text = '';
  for await (const chunk of incoming) text += String(chunk);
  const { pathname: path, searchParams } = new URL(incoming.url ?? '/', 'https://127.0.0.1');
  const { method = '', headers } = incoming;
  const query = Object.fromEntries(searchParams);
  const body: unknown = text === '' ? undefined : JSON.parse(text);
  return { method, path, query, body, contentType: headers['content-type'], accept: headers.accept };
}

function send(response: ServerResponse, status: number, json: string | Buffer): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(json);
}
