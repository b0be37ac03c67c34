import type { KubeObject } from '../../../api/meta.js';
import { StatusError } from '../../../kube/errors.js';
import type { ApiRequest, ClientTransport, StreamRequest } from '../../../kube/transport.js';

interface OpenWatch {
  readonly path: string;
  readonly push: (event: object) => void;
}

const PATH =
  /^\/apis?\/(?:[^/]+\/)?v[^/]+\/(?:namespaces\/(?<namespace>[^/]+)\/)?(?<plural>[^/]+)(?:\/(?<name>[^/]+))?$/;

/** The API server as a page sees it: lists, and watches to which a test adds events. */
export class WatchedCluster implements ClientTransport {
  /** Plural → the namespaces that the user may not list; `*`: all of them, and the cluster. */
  readonly forbidden = new Map<string, readonly string[]>();
  readonly absent = new Set<string>();
  readonly requests: string[] = [];
  readonly #objects = new Map<string, KubeObject[]>();
  readonly #watches = new Set<OpenWatch>();
  /** A watch begins with those after its version. */
  readonly #events: { readonly version: number; readonly plural: string; readonly event: object }[] = [];
  #version = 1;

  /** @param plural also names the kind in paths */
  put(plural: string, ...objects: readonly KubeObject[]): void {
    const known = this.#objects.get(plural) ?? [];
    for (const object of objects) {
      const metadata = { ...object.metadata, resourceVersion: String(++this.#version) };
      const next = { ...object, metadata };
      const isSame = ({ metadata: { name, namespace } }: KubeObject) =>
        name === metadata.name && namespace === metadata.namespace;
      const index = known.findIndex(isSame);
      known.splice(index < 0 ? known.length : index, index < 0 ? 0 : 1, next);
      this.#tell(plural, { type: index < 0 ? 'ADDED' : 'MODIFIED', object: next });
    }
    this.#objects.set(plural, known);
  }

  /** The number of open watches of a kind. */
  watching(plural: string): number {
    return [...this.#watches].filter(({ path }) => path.endsWith(`/${plural}`)).length;
  }

  async untilWatching(plural: string, count: number): Promise<void> {
    while (this.watching(plural) !== count) await new Promise((resolve) => setImmediate(resolve));
  }

  request({ path, method }: ApiRequest): Promise<unknown> {
    this.requests.push(`${method} ${path}`);
    const { namespace, plural = '', name } = PATH.exec(path)?.groups ?? {};
    const init = { request: `GET ${path}`, message: forbiddenMessage(plural, namespace) };
    const notFound = new StatusError({ ...init, status: 404, reason: 'NotFound' });
    if (this.absent.has(plural)) return Promise.reject(notFound);
    if (this.#isForbidden(plural, namespace))
      return Promise.reject(new StatusError({ ...init, status: 403, reason: 'Forbidden' }));
    const all = this.#objects.get(plural) ?? [];
    const items = all.filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace);
    if (name === undefined)
      return Promise.resolve({ metadata: { resourceVersion: String(this.#version) }, items: structuredClone(items) });
    const found = items.find(({ metadata }) => metadata.name === name);
    return found === undefined ? Promise.reject(notFound) : Promise.resolve(structuredClone(found));
  }

  #isForbidden(plural: string, namespace: string | undefined): boolean {
    const hidden = this.forbidden.get(plural) ?? [];
    return namespace === undefined ? hidden.length > 0 : hidden.includes('*') || hidden.includes(namespace);
  }

  async *stream({ path, query, signal }: StreamRequest): AsyncGenerator<unknown, void, undefined> {
    const from = Number(query?.resourceVersion);
    const missed = this.#events.filter(({ version, plural }) => version > from && path.endsWith(`/${plural}`));
    const queue: object[] = missed.map(({ event }) => structuredClone(event));
    let wake: () => void = () => undefined;
    const watch: OpenWatch = {
      path,
      push: (event) => {
        queue.push(event);
        wake();
      },
    };
    this.#watches.add(watch);
    signal.addEventListener('abort', () => wake(), { once: true });
    try {
      while (!signal.aborted) {
        yield* queue.splice(0);
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (queue.length > 0) resolve();
        });
      }
    } finally {
      this.#watches.delete(watch);
    }
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #tell(plural: string, event: object): void {
    this.#events.push({ version: this.#version, plural, event });
    for (const { path, push } of this.#watches) if (path.endsWith(`/${plural}`)) push(structuredClone(event));
  }
}

/** In the words of the API server. */
function forbiddenMessage(plural: string, namespace: string | undefined): string {
  const group = plural === 'addressleases' || plural === 'addresspools' ? 'ipam.holdfast.dev' : '';
  const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  return `${plural}.${group} is forbidden: User "alice" cannot list resource "${plural}" in API group "${group}" ${where}`;
}
