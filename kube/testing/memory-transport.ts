import jsonpatch, { type Operation } from 'fast-json-patch';
import type { KubeObject } from '../../api/meta.js';
import { mergePatch } from '../../test/merge-patch.js';
import { type Clock, systemClock } from '../clock.js';
import { StatusError, TransportError } from '../errors.js';
import type { ObjectRef, Resource } from '../resource.js';
import type { ApiRequest, ClientTransport, Query, StreamRequest } from '../transport/transport.js';
import { FieldOwners } from './field-owners.js';
import { type DeleteRequest, ObjectTracker, type WatchEvent } from './object-tracker.js';
import { CONFLICT, EXPIRED, INVALID, NOT_FOUND, type Preconditions, checkPreconditions, refusal } from './refusals.js';
import type { Selectors } from './selectors.js';

/** `/api/v1` or `/apis/<group>/<version>`; the namespace; plural; name; subresource. `namespaces/<name>` is an object. */
const PATH =
  /^\/(?:api|apis\/(?<group>[^/]+))\/(?<version>[^/]+)(?:\/namespaces\/(?<namespace>[^/]+)(?=\/(?!status$|finalize$)))?\/(?<plural>[^/]+)(?:\/(?<name>[^/]+))?(?:\/(?<subresource>[^/]+))?$/;
const BOOKMARK_MS = 60_000;
/** Before the end of a watch, so that the next one continues there. */
const LAST_BOOKMARK_MS = 2_000;
const WATCH_SECONDS = 1_800;

/** What a request is about. */
export interface RequestTarget {
  readonly kind: Pick<Resource, 'group' | 'version' | 'plural'>;
  readonly namespace: string | undefined;
  /** undefined: a collection. */
  readonly name: string | undefined;
  readonly subresource: string | undefined;
}

/** @throws {StatusError} 404 if the path is of no kind */
export function targetOf(path: string): RequestTarget {
  const { group = '', version = '', plural, namespace, name, subresource } = PATH.exec(path)?.groups ?? {};
  if (plural === undefined) throw refusal({ group, plural: path }, '', NOT_FOUND, 'is no path of a kind');
  return { kind: { group, version, plural }, namespace: decoded(namespace), name: decoded(name), subresource };
}

/** A failure of a request: it has no effect, or it is applied and the answer is lost. */
export type Fault = { readonly error: Error; readonly applied: boolean } | undefined;

interface Page {
  readonly items: readonly KubeObject[];
  readonly version: number;
}

/** The API server of an {@link ObjectTracker}, for a `Client`: its answers are copies, as if they had been sent as JSON. */
export class MemoryTransport implements ClientTransport {
  readonly tracker: ObjectTracker;
  /** All but watches, in the order in which they arrived. */
  readonly requests: ApiRequest[] = [];
  /** Awaited before each request and watch is served. An error that it throws is the answer, and so is a {@link Fault} that it returns. */
  before: (request: ApiRequest) => unknown = () => undefined;
  readonly #clock: Clock;
  readonly #owners = new FieldOwners();
  /** Lists with pages that nobody has read, by their continue token. */
  readonly #lists = new Map<string, Page>();
  #lastToken = 0;
  /** The plural of each open watch. */
  readonly #watches: string[] = [];

  constructor(tracker = new ObjectTracker(), clock: Clock = systemClock) {
    this.tracker = tracker;
    this.#clock = clock;
  }

  async request(request: ApiRequest): Promise<unknown> {
    if (request.signal?.aborted) throw new TransportError('aborted', `${request.method} ${request.path}: aborted`);
    this.requests.push(request);
    const fault = await this.#faultOf(request);
    try {
      const answer = copyOf(this.serve({ ...request, body: copyOf(request.body) }));
      if (fault !== undefined) throw fault.error;
      return answer;
    } catch (error) {
      throw error instanceof StatusError && fault !== undefined ? fault.error : error;
    }
  }

  async *stream(request: StreamRequest): AsyncGenerator<unknown, void, undefined> {
    const fault = await this.#faultOf({ ...request, method: 'GET' });
    if (fault !== undefined) throw fault.error;
    for await (const event of this.watch(request)) yield copyOf(event);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  /** The number of open watches of a kind. */
  watching(plural: string): number {
    return this.#watches.filter((each) => each === plural).length;
  }

  /**
   * Answers a request at once. The answer must not be changed.
   * @throws {StatusError}
   */
  serve(request: ApiRequest): unknown {
    const { method, path, query = {} } = request;
    const target = targetOf(path);
    const { kind, namespace, name = '', subresource } = target;
    if (target.name === undefined && method === 'GET') return this.#list(target, request);
    const [ref, body] = [{ namespace, name }, request.body as KubeObject];
    const write = { subresource, dryRun: query.dryRun !== undefined };
    switch (method) {
      case 'GET':
        return this.tracker.get(kind, ref);
      case 'POST':
        return this.tracker.create(
          kind,
          { ...body, metadata: { ...body.metadata, ...(namespace && { namespace }) } },
          write,
        );
      case 'PUT':
        return this.tracker.update(kind, ref, (found) => replaced(target, found, body), write);
      case 'PATCH':
        return this.#patch(target, ref, request);
      case 'DELETE': {
        const options = (request.body ?? {}) as DeleteRequest & { preconditions?: Preconditions };
        return this.#delete(kind, ref, { ...options, ...options.preconditions, ...write });
      }
      default:
        throw new TypeError(`${method} is not simulated`);
    }
  }

  #delete(kind: RequestTarget['kind'], ref: ObjectRef, request: DeleteRequest): unknown {
    const last = this.tracker.delete(kind, ref, request);
    return this.tracker.find(kind, ref) === undefined ? { kind: 'Status', status: 'Success' } : last;
  }

  /** Yields the events of a watch until it ends. They must not be changed. */
  async *watch({ path, query = {}, signal }: StreamRequest): AsyncGenerator<WatchEvent, void, undefined> {
    const { kind, namespace } = targetOf(path);
    const queue: WatchEvent[] = [];
    let hasEnded = signal.aborted;
    let wake: () => void = () => undefined;
    const end = () => {
      hasEnded = true;
      wake();
    };
    const push = (event: WatchEvent) => {
      queue.push(event);
      wake();
    };
    const seconds = Number(query.timeoutSeconds ?? WATCH_SECONDS);
    const stops = [
      this.tracker.watch(kind, textOf(query.resourceVersion), selectorsOf(namespace, query), push),
      this.#clock.setTimer(seconds * 1000, end),
      ...(query.allowWatchBookmarks ? [this.#sendBookmarks(seconds * 1000 - LAST_BOOKMARK_MS, push)] : []),
    ];
    signal.addEventListener('abort', end, { once: true });
    this.#watches.push(kind.plural);
    try {
      for (;;) {
        yield* queue.splice(0);
        if (hasEnded) return;
        await new Promise<void>((resolve) => {
          wake = resolve;
          if (queue.length > 0) resolve();
        });
      }
    } finally {
      this.#watches.splice(this.#watches.indexOf(kind.plural), 1);
      signal.removeEventListener('abort', end);
      for (const stop of stops) stop();
    }
  }

  async #faultOf(request: ApiRequest): Promise<Fault> {
    const fault = (await this.before(request)) as Fault;
    if (fault !== undefined && !fault.applied) throw fault.error;
    return fault;
  }

  #sendBookmarks(lastMs: number, push: (event: WatchEvent) => void): () => void {
    let cancel: () => void = () => undefined;
    const after = (ms: number, leftMs: number) => {
      cancel = this.#clock.setTimer(ms, () => {
        push({ type: 'BOOKMARK', object: { metadata: { resourceVersion: String(this.tracker.version) } } });
        if (leftMs > ms) after(Math.min(BOOKMARK_MS, leftMs - ms), leftMs - ms);
      });
    };
    after(Math.min(BOOKMARK_MS, lastMs), lastMs);
    return () => cancel();
  }

  #list({ kind, namespace }: RequestTarget, { query = {}, accept = '' }: ApiRequest): object {
    const { items, version } = this.#pageAt(kind, textOf(query.continue)) ?? {
      items: this.tracker.list(kind, selectorsOf(namespace, query)),
      version: this.tracker.version,
    };
    const limit = Number(query.limit ?? Infinity);
    const isMore = items.length > limit;
    const token = isMore ? String(++this.#lastToken) : undefined;
    if (token !== undefined) this.#lists.set(token, { items: items.slice(limit), version });
    const shown = isMore ? items.slice(0, limit) : items;
    const isPartial = accept.includes('PartialObjectMetadataList');
    return {
      kind: 'List',
      apiVersion: 'v1',
      metadata: { resourceVersion: String(version), ...(token !== undefined && { continue: token }) },
      items: isPartial ? shown.map(({ metadata }) => ({ metadata })) : shown,
    };
  }

  #pageAt(kind: RequestTarget['kind'], token: string | undefined): Page | undefined {
    if (token === undefined) return undefined;
    const page = this.#lists.get(token);
    this.#lists.delete(token);
    if (page !== undefined && !this.tracker.isCompacted(page.version)) return page;
    throw refusal(kind, '', EXPIRED, 'the provided continue parameter is too old to display a consistent list result');
  }

  #patch(target: RequestTarget, ref: ObjectRef, request: ApiRequest): KubeObject {
    if (request.contentType === 'application/apply-patch+yaml') return this.#apply(target, ref, request);
    const write = { subresource: target.subresource, dryRun: request.query?.dryRun !== undefined };
    return this.tracker.update(target.kind, ref, (found) => patched(target, found, request), write);
  }

  #apply({ kind }: RequestTarget, ref: ObjectRef, { query = {}, body }: ApiRequest): KubeObject {
    const manager = String(query.fieldManager);
    const applied = body as KubeObject;
    const { apiVersion: _version, kind: _kind, metadata, ...fields } = applied;
    const { name: _name, namespace: _namespace, ...labels } = metadata;
    const owned = { ...fields, metadata: labels };
    const found = this.tracker.find(kind, ref);
    const write = { dryRun: query.dryRun !== undefined };
    const conflicts = found === undefined || query.force ? [] : this.#owners.conflicts(found, owned, manager);
    if (conflicts.length > 0) throw refusal(kind, ref.name, CONFLICT, `conflicts with ${conflicts.join()}`);
    const stored =
      found === undefined
        ? this.tracker.create(kind, { ...applied, metadata: { ...metadata, ...ref } as KubeObject['metadata'] }, write)
        : this.tracker.update(kind, ref, () => this.#owners.merge(found, owned, manager), write);
    if (!write.dryRun) this.#owners.record(found, stored, owned, manager);
    return stored;
  }
}

function replaced({ kind }: RequestTarget, found: KubeObject, body: KubeObject): KubeObject {
  checkPreconditions(kind, found, body.metadata);
  return body;
}

function patched({ kind, name = '' }: RequestTarget, found: KubeObject, { contentType, body }: ApiRequest): KubeObject {
  const copy = structuredClone(found);
  if (contentType !== 'application/json-patch+json') {
    mergePatch(copy, body as object);
    return copy;
  }
  try {
    return jsonpatch.applyPatch(copy, body as Operation[], true).newDocument;
  } catch (error) {
    throw refusal(kind, name, INVALID, String(error));
  }
}

function selectorsOf(namespace: string | undefined, query: Query): Selectors {
  const { labelSelector, fieldSelector } = query;
  return { namespace, labelSelector: textOf(labelSelector), fieldSelector: textOf(fieldSelector) };
}

function textOf(value: Query[string]): string | undefined {
  return value === undefined ? undefined : String(value);
}

function decoded(segment: string | undefined): string | undefined {
  return segment === undefined ? undefined : decodeURIComponent(segment);
}

function copyOf<T>(value: T): T {
  return value === undefined ? value : (JSON.parse(JSON.stringify(value)) as T);
}
