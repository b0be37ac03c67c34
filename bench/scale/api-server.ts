import { readFile } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { KubeObject } from '../../api/meta.js';
import { StatusError } from '../../kube/errors.js';
import type { Preconditions } from '../../test/api-errors.js';
import type { MemoryStore, StoredEvent } from './memory-store.js';

/** `/api/v1` or `/apis/<group>/<version>`; the namespace; plural; name; subresource. */
const PATH = /^(\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/]+)(?=\/))?\/([^/]+)(?:\/([^/]+))?(?:\/([^/]+))?$/;
const BOOKMARK_MS = 10_000;

interface Target {
  /** Of the collection in all namespaces. */
  readonly path: string;
  readonly namespace: string | undefined;
  readonly name: string | undefined;
}

/** Serves a {@link MemoryStore} over HTTPS as kube-apiserver does: lists in pages, watches with bookmarks, and writes. There is no admission. */
export class MemoryApiServer {
  /** Requests other than watches, by method and plural. */
  readonly requests = new Map<string, number>();
  readonly #store: MemoryStore;
  readonly #server: Server;
  readonly #lists = new Map<string, readonly KubeObject[]>();
  #lastList = 0;

  private constructor(store: MemoryStore, files: { key: Buffer; cert: Buffer }) {
    this.#store = store;
    this.#server = createServer(files, (request, response) => void this.#answer(request, response));
    this.#server.keepAliveTimeout = 0;
  }

  static async start(store: MemoryStore, port: number, files: { key: string; cert: string }): Promise<MemoryApiServer> {
    const [key, cert] = await Promise.all([readFile(files.key), readFile(files.cert)]);
    const server = new MemoryApiServer(store, { key, cert });
    await new Promise<void>((resolve) => server.#server.listen(port, '127.0.0.1', resolve));
    return server;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const { pathname, searchParams } = new URL(request.url ?? '/', 'https://127.0.0.1');
    const [, root = '', namespace, plural = '', name] = PATH.exec(pathname) ?? [];
    const target = { path: `${root}/${plural}`, namespace, name };
    if (searchParams.get('watch') === 'true') {
      this.#watch(target, searchParams, response);
      return;
    }
    const { method = '' } = request;
    const kind = `${method} ${plural}`;
    this.requests.set(kind, (this.requests.get(kind) ?? 0) + 1);
    try {
      send(response, 200, this.#serve(method, target, body, searchParams));
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
      const { status, reason, message } = error;
      send(response, status, { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: status, reason, message });
    }
  }

  #serve(method: string, target: Target, text: string, query: URLSearchParams): object {
    const { path, namespace = '', name } = target;
    if (method === 'GET' && name === undefined) return this.#list(target, query);
    const key = `${namespace}/${name ?? ''}`;
    if (method === 'GET') return this.#store.get(path, key);
    const body = (text === '' ? {} : JSON.parse(text)) as KubeObject & { preconditions?: Preconditions };
    if (query.has('dryRun')) return body;
    switch (method) {
      case 'POST':
        return this.#store.create(path, { ...body, metadata: { ...body.metadata, ...(namespace && { namespace }) } });
      case 'PUT':
        return this.#store.replace(path, key, body);
      case 'PATCH':
        return this.#store.patch(path, key, body);
      default:
        return this.#store.remove(path, key, body.preconditions);
    }
  }

  /** A continue token is the number of the list, and where the next page begins. */
  #list(target: Target, query: URLSearchParams): object {
    const limit = Number(query.get('limit') ?? Infinity);
    const [number, from = 0, version] = query.get('continue')?.split('-').map(Number) ?? [];
    const selected = selectorOf(target, query);
    const found = this.#lists.get(String(number)) ?? [...this.#store.collection(target.path).objects.values()].filter(selected); // prettier-ignore
    const id = number ?? ++this.#lastList;
    const end = from + limit;
    const resourceVersion = String(version ?? this.#store.version);
    if (end < found.length) this.#lists.set(String(id), found);
    else this.#lists.delete(String(id));
    const more = end < found.length ? { continue: `${id}-${end}-${resourceVersion}` } : {};
    return { kind: 'List', apiVersion: 'v1', metadata: { resourceVersion, ...more }, items: found.slice(from, end) };
  }

  #watch(target: Target, query: URLSearchParams, response: ServerResponse): void {
    const { events, watchers } = this.#store.collection(target.path);
    const selected = selectorOf(target, query);
    const write = ({ type, object }: StoredEvent) => {
      if (selected(object)) response.write(`${JSON.stringify({ type, object })}\n`);
    };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.flushHeaders();
    const from = Number(query.get('resourceVersion'));
    for (const event of events) if (event.version > from) write(event);
    watchers.add(write);
    const bookmark = setInterval(() => {
      const object = { metadata: { resourceVersion: String(this.#store.version) } };
      response.write(`${JSON.stringify({ type: 'BOOKMARK', object })}\n`);
    }, BOOKMARK_MS);
    const end = setTimeout(() => response.end(), Number(query.get('timeoutSeconds') ?? 300) * 1000);
    response.on('close', () => {
      clearInterval(bookmark);
      clearTimeout(end);
      watchers.delete(write);
    });
  }
}

/** Understands labels that are equal, and the field `metadata.name`; other field selectors select everything. */
function selectorOf({ namespace, name }: Target, query: URLSearchParams): (object: KubeObject) => boolean {
  const labels = (query.get('labelSelector') ?? '').split(',').filter((part) => part !== '');
  const field = /^metadata\.name=(.*)$/.exec(query.get('fieldSelector') ?? '')?.[1] ?? name;
  return ({ metadata }) =>
    (namespace === undefined || metadata.namespace === namespace) &&
    (field === undefined || metadata.name === field) &&
    labels.every((part) => {
      const [key = '', value] = part.split('=');
      return value === undefined ? metadata.labels?.[key] !== undefined : metadata.labels?.[key] === value;
    });
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}
