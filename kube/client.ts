import { omitUndefined } from '../api/json.js';
import type { KubeObject } from '../api/meta.js';
import { isGone, isNotFound } from './errors.js';
import { type ObjectRef, type Resource, apiVersionOf, resourcePath } from './resource.js';
import type { ClientTransport } from './transport/transport.js';

export interface ListOptions {
  /** Absent: all namespaces. */
  namespace?: string | undefined;
  labelSelector?: string | undefined;
  fieldSelector?: string | undefined;
  /** The list is at least as new as this version. Absent: the newest. */
  resourceVersion?: string | undefined;
  /** Default 100. */
  pageSize?: number;
  /** Only apiVersion, kind and metadata (PartialObjectMetadataList). */
  metadataOnly?: boolean;
  /** Objects have no managedFields. */
  dropsManagedFields?: boolean;
  signal?: AbortSignal | undefined;
}

export interface ListResult<T> {
  items: T[];
  /** The version at which a watch can continue. */
  resourceVersion: string;
}

/** RFC 6902. */
export interface JsonPatchOperation {
  op: 'add' | 'remove' | 'replace' | 'test' | 'move' | 'copy';
  path: string;
  value?: unknown;
  from?: string;
}

export type Patch =
  | { type: 'json'; operations: JsonPatchOperation[] }
  /** RFC 7386. */
  | { type: 'merge'; body: object }
  /** Built-in kinds only. */
  | { type: 'strategic'; body: object }
  /** Server-side apply. */
  | { type: 'apply'; object: object; fieldManager: string; force?: boolean };

export interface CallOptions {
  /** Default: the transport's. */
  deadlineMs?: number;
  signal?: AbortSignal | undefined;
  /** The namespace that the request serves, if its object is of the cluster or of another namespace: namespaces take turns. */
  tenant?: string;
}

interface WriteOptions extends CallOptions {
  /** The object is validated and admitted, but not stored. */
  dryRun?: boolean;
}

export interface DeleteOptions extends CallOptions {
  /** Precondition: the object has this UID. */
  uid?: string | undefined;
  /** Precondition: the object has this resourceVersion. */
  resourceVersion?: string | undefined;
  propagationPolicy?: 'Orphan' | 'Background' | 'Foreground';
  gracePeriodSeconds?: number;
}

interface ListPage<T> {
  metadata?: { resourceVersion?: string; continue?: string };
  items?: T[];
}

/**
 * A fifth of kubectl's. A page is parsed in one go, and while V8 marks a large heap, each 64 KiB that a page allocates cost 5 ms more
 * (`--trace-incremental-marking`): 500 objects block the event loop for 0.4 s.
 */
const PAGE_SIZE = 100;
/** The list of a huge collection may outlive its continue token (5 minutes) once. More restarts point to an error. */
const LIST_RESTARTS = 2;

/** Typed verbs on the transport. Objects are plain JSON: unknown fields are kept when an object is read and written. */
export class Client {
  readonly transport: ClientTransport;

  constructor(transport: ClientTransport) {
    this.transport = transport;
  }

  /** @throws {StatusError} 404 if there is no such object */
  async get<T extends KubeObject>(resource: Resource<T>, ref: ObjectRef, options: CallOptions = {}): Promise<T> {
    const path = resourcePath(resource, ref);
    return (await this.transport.request({ ...callOptionsOf(options), method: 'GET', path })) as T;
  }

  /** @returns undefined if there is no such object or no such kind */
  async find<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: CallOptions = {},
  ): Promise<T | undefined> {
    try {
      return await this.get(resource, ref, options);
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  /** Reads all pages. Starts again if the continue token expires. */
  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ListResult<T>> {
    return this.listAs(resource, (object) => object, options);
  }

  /** Like `list`, but keeps only the transformed objects, so that a list of any length needs the memory of one page. */
  async listAs<T extends KubeObject, P>(
    resource: Resource<T>,
    transform: (object: T) => P,
    options: ListOptions = {},
  ): Promise<ListResult<P>> {
    for (let restarts = 0; ; restarts++) {
      try {
        return await this.#listPages(resource, transform, options);
      } catch (error) {
        if (!isGone(error) || options.resourceVersion !== undefined || restarts === LIST_RESTARTS) throw error;
      }
    }
  }

  /** Creates an object in `options.namespace` or its own namespace. */
  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions & { namespace?: string } = {},
  ): Promise<T> {
    const namespace = options.namespace ?? object.metadata.namespace;
    const path = resourcePath(resource, { namespace });
    const body = withTypeMeta(resource, object);
    const query = dryRunQuery(options.dryRun);
    return (await this.transport.request({ ...callOptionsOf(options), method: 'POST', path, query, body })) as T;
  }

  /**
   * Replaces an object by PUT. Its resourceVersion is the precondition.
   * @throws {StatusError} 409 if the object has changed
   */
  async replace<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    options: WriteOptions & { subresource?: 'status' } = {},
  ): Promise<T> {
    const path = resourcePath(resource, { ...refOf(object), ...subresourceOf(options.subresource) });
    const body = withTypeMeta(resource, object);
    const query = dryRunQuery(options.dryRun);
    return (await this.transport.request({ ...callOptionsOf(options), method: 'PUT', path, query, body })) as T;
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    patch: Patch,
    options: WriteOptions & { subresource?: string } = {},
  ): Promise<T> {
    const path = resourcePath(resource, { ...ref, ...subresourceOf(options.subresource) });
    const { contentType, body, query } = encodePatch(patch);
    const encoded = { query: { ...query, ...dryRunQuery(options.dryRun) }, body, contentType };
    return (await this.transport.request({ ...callOptionsOf(options), method: 'PATCH', path, ...encoded })) as T;
  }

  /**
   * Deletes an object. Succeeds if the object is already gone, with preconditions too.
   * @returns the object if finalizers or its grace period keep it
   * @throws {StatusError} 409 if a precondition does not hold
   */
  async delete<T extends KubeObject>(
    resource: Resource<T>,
    ref: ObjectRef,
    options: DeleteOptions = {},
  ): Promise<T | undefined> {
    const { uid, resourceVersion, propagationPolicy, gracePeriodSeconds } = options;
    const body = {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      // JSON omits undefined values.
      preconditions: uid === undefined && resourceVersion === undefined ? undefined : { uid, resourceVersion },
      propagationPolicy,
      gracePeriodSeconds,
    };
    try {
      const path = resourcePath(resource, ref);
      const answer = (await this.transport.request({ ...callOptionsOf(options), method: 'DELETE', path, body })) as T;
      return answer.kind === 'Status' ? undefined : answer;
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return undefined;
    }
  }

  /** Sends a POST to a subresource, such as `serviceaccounts/token` and `pods/eviction`. */
  async createSubresource(resource: Resource, ref: ObjectRef, subresource: string, body: unknown): Promise<unknown> {
    const path = resourcePath(resource, { ...ref, subresource });
    return this.transport.request({ method: 'POST', path, body });
  }

  /**
   * Yields the objects of one page after the other, so that a list of any length needs the memory of one page.
   * @throws {StatusError} 410 if the continue token expires
   */
  async *pages<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): AsyncGenerator<ListResult<T>> {
    const path = resourcePath(resource, { namespace: options.namespace });
    const { resourceVersion, dropsManagedFields, signal } = options;
    const selectors = { labelSelector: options.labelSelector, fieldSelector: options.fieldSelector };
    let from: { continue?: string; resourceVersion?: string; resourceVersionMatch?: string } =
      resourceVersion === undefined ? {} : { resourceVersion, resourceVersionMatch: 'NotOlderThan' };
    for (;;) {
      const query = { ...selectors, limit: options.pageSize ?? PAGE_SIZE, ...from };
      const accept = options.metadataOnly ? METADATA_LIST : undefined;
      const request = { method: 'GET', path, query, accept, dropsManagedFields, signal };
      const page = (await this.transport.request(request)) as ListPage<T>;
      const items = (page.items ?? []).map((item) => withTypeMeta(resource, item));
      yield { items, resourceVersion: page.metadata?.resourceVersion ?? '' };
      const token = page.metadata?.continue;
      if (!token) return;
      // A continue token contains its resourceVersion; the server rejects a second one.
      from = { continue: token };
    }
  }

  async #listPages<T extends KubeObject, P>(
    resource: Resource<T>,
    project: (object: T) => P,
    options: ListOptions,
  ): Promise<ListResult<P>> {
    const list: ListResult<P> = { items: [], resourceVersion: '' };
    for await (const { items, resourceVersion } of this.pages(resource, options)) {
      for (const item of items) list.items.push(project(item));
      list.resourceVersion = resourceVersion;
    }
    return list;
  }
}

const METADATA_LIST = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json';

/** Adds apiVersion and kind, which items of lists do not have. */
function withTypeMeta<T extends KubeObject>(resource: Resource<T>, object: T): T {
  if (object.kind !== undefined && object.apiVersion !== undefined) return object;
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}

function refOf(object: KubeObject): ObjectRef {
  return { name: object.metadata.name, namespace: object.metadata.namespace };
}

function callOptionsOf(options: CallOptions): CallOptions {
  const { deadlineMs, signal, tenant } = options;
  return omitUndefined({ deadlineMs, signal, tenant });
}

function subresourceOf(subresource: string | undefined): { subresource?: string } {
  return subresource === undefined ? {} : { subresource };
}

function dryRunQuery(wanted: boolean | undefined): { dryRun?: string } {
  return wanted ? { dryRun: 'All' } : {};
}

interface EncodedPatch {
  contentType: string;
  body: object;
  query?: { fieldManager: string; force?: boolean | undefined };
}

function encodePatch(patch: Patch): EncodedPatch {
  switch (patch.type) {
    case 'json':
      return { contentType: 'application/json-patch+json', body: patch.operations };
    case 'merge':
      return { contentType: 'application/merge-patch+json', body: patch.body };
    case 'strategic':
      return { contentType: 'application/strategic-merge-patch+json', body: patch.body };
    case 'apply': {
      const query = { fieldManager: patch.fieldManager, force: patch.force };
      // JSON is YAML. Before 1.33, the server accepts no other content type for apply.
      return { contentType: 'application/apply-patch+yaml', body: patch.object, query };
    }
  }
}
