import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import type { Client, ListOptions } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { type Preconditions, apiError, checkPreconditions } from '../../test/api-errors.js';
import { mergePatch } from '../../test/merge-patch.js';
import { qualifiedName } from '../forbidden.js';

type CommandClient = Pick<Client, 'get' | 'list' | 'listAs' | 'create' | 'patch' | 'delete'>;

export interface ClusterWrite {
  readonly verb: 'create' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly name: string;
}

/** The process is gone, wherever it was. */
export class ProcessKilled extends Error {}

/** The objects of an API server, as far as commands read and write them. */
export class MemoryCluster {
  /** Plurals that the user may not read in all namespaces, or at all if they are cluster-scoped. */
  readonly refused = new Set<string>();
  /** `plural` or `plural?selector` of all reads. */
  readonly reads: string[] = [];
  /** What a command printed, as its result and as its progress. */
  readonly printed: string[] = [];
  readonly logged: string[] = [];
  /** Called before each list; may throw. */
  beforeList: () => void = () => undefined;
  /** Called after each list of this kind: what happens meanwhile. */
  afterList: (resource: Resource) => void = () => undefined;
  /** Called before each write; may throw. */
  beforeWrite: (write: ClusterWrite) => void = () => undefined;
  /** Called after each write. */
  afterWrite: () => void = () => undefined;
  writes = 0;
  /** The process ends with this write. */
  killAfter: number | undefined;
  /** By the name of the kind, then by `namespace/name`. */
  protected readonly kinds = new Map<string, Map<string, KubeObject>>();
  #version = 100;

  put<T extends KubeObject>(resource: Resource<T>, ...objects: readonly T[]): this {
    for (const object of objects) this.store(resource, structuredClone(object));
    return this;
  }

  /** Replaces the object of that name. */
  change<T extends KubeObject>(resource: Resource<T>, name: string, change: (object: T) => T): void {
    for (const object of this.all(resource)) {
      if (object.metadata.name !== name) continue;
      this.of(resource).delete(keyOf(object.metadata));
      this.store(resource, change(structuredClone(object)));
    }
  }

  /** @param key `namespace/name` */
  remove(resource: Resource, key: string): void {
    this.of(resource).delete(key);
  }

  all<T extends KubeObject>(resource: Resource<T>): T[] {
    return [...this.of(resource).values()] as T[];
  }

  find<T extends KubeObject>(resource: Resource<T>, name: string): T | undefined {
    return this.all(resource).find(({ metadata }) => metadata.name === name);
  }

  get client(): CommandClient {
    const client = {
      get: async (resource: Resource, ref: ObjectRef) => Promise.resolve(this.#get(resource, ref)),
      list: async (resource: Resource, options?: ListOptions) => Promise.resolve(this.#list(resource, options)),
      listAs: async (resource: Resource, transform: (object: KubeObject) => unknown, options?: ListOptions) => {
        const { items, ...rest } = await Promise.resolve(this.#list(resource, options));
        return { ...rest, items: items.map(transform) };
      },
      create: (resource: Resource, object: KubeObject) => this.create(resource, object),
      patch: (resource: Resource, ref: ObjectRef, { body }: { body: KubeObject }, { dryRun = false } = {}) =>
        dryRun
          ? Promise.resolve(this.#get(resource, ref))
          : this.#write({ verb: 'patch', resource, name: ref.name }, () => this.patch(resource, ref, body)),
      delete: (resource: Resource, ref: ObjectRef, preconditions: Preconditions = {}) =>
        this.#write({ verb: 'delete', resource, name: ref.name }, () => this.delete(resource, ref, preconditions)),
    };
    return client as unknown as CommandClient;
  }

  /** What commands print. */
  protected get output() {
    return {
      print: (line: string) => void this.printed.push(line),
      printStatus: (line: string) => void this.logged.push(line),
    };
  }

  protected checkRead({ plural, group }: Resource, verb: string, namespace: string | undefined): void {
    if (namespace !== undefined || !this.refused.has(plural)) return;
    const message = `User "eve" cannot ${verb} resource "${plural}" in API group "${group}" at the cluster scope`;
    throw new StatusError({ request: verb, status: 403, reason: 'Forbidden', message });
  }

  protected create(resource: Resource, object: KubeObject): Promise<KubeObject> {
    return this.#write({ verb: 'create', resource, name: object.metadata.name }, () => {
      const { name } = object.metadata;
      if (this.of(resource).has(keyOf(object.metadata))) throw apiError(409, 'AlreadyExists', name, name);
      return structuredClone(this.store(resource, structuredClone(object)));
    });
  }

  protected patch(resource: Resource, ref: ObjectRef, { metadata, ...body }: KubeObject): KubeObject {
    const found = this.get(resource, ref);
    const { uid, resourceVersion, ...changes } = (metadata as Partial<ObjectMeta> | undefined) ?? {};
    checkPreconditions(found, { uid, resourceVersion });
    mergePatch(found, { ...body, metadata: changes });
    if (found.metadata.deletionTimestamp !== undefined && !hasFinalizers(found)) this.removed(resource, found);
    else this.store(resource, found);
    return structuredClone(found);
  }

  protected delete(resource: Resource, ref: ObjectRef, preconditions: Preconditions): void {
    const found = this.of(resource).get(keyOf(ref));
    if (found === undefined) return;
    checkPreconditions(found, preconditions);
    if (hasFinalizers(found)) found.metadata.deletionTimestamp ??= '2026-01-01T00:00:00Z';
    else this.removed(resource, found);
  }

  /** Removes an object without finalizers that was deleted. */
  protected removed(resource: Resource, { metadata }: KubeObject): void {
    this.of(resource).delete(keyOf(metadata));
  }

  protected store<T extends KubeObject>(resource: Resource<T>, object: T): T {
    object.metadata.resourceVersion = String(++this.#version);
    object.metadata.uid ??= `uid-${this.#version}`;
    this.of(resource).set(keyOf(object.metadata), object);
    return object;
  }

  protected get(resource: Resource, ref: ObjectRef): KubeObject {
    const found = this.of(resource).get(keyOf(ref));
    if (found === undefined) throw apiError(404, 'NotFound', 'not found', ref.name);
    return found;
  }

  protected of(resource: Resource): Map<string, KubeObject> {
    const name = qualifiedName(resource);
    const known = this.kinds.get(name) ?? new Map<string, KubeObject>();
    this.kinds.set(name, known);
    return known;
  }

  #get(resource: Resource, ref: ObjectRef): KubeObject {
    this.reads.push(`${resource.plural}/${ref.name}`);
    this.checkRead(resource, 'get', ref.namespace);
    return structuredClone(this.get(resource, ref));
  }

  #list(resource: Resource, { namespace, labelSelector = '', fieldSelector = '' }: ListOptions = {}) {
    this.reads.push(`${resource.plural}?${labelSelector}${fieldSelector}`);
    this.beforeList();
    this.checkRead(resource, 'list', namespace);
    const items = this.all(resource)
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .filter(({ metadata }) => matches(labelSelector, (key) => metadata.labels?.[key]))
      .filter((object) => matches(fieldSelector, (path) => valueAt(object, path)))
      .map((object) => structuredClone(object));
    this.afterList(resource);
    return { items, resourceVersion: String(this.#version) };
  }

  async #write<T>(write: ClusterWrite, act: () => T): Promise<T> {
    await Promise.resolve();
    if (this.writes === this.killAfter) throw new ProcessKilled();
    this.beforeWrite(write);
    const result = act();
    this.writes += 1;
    this.afterWrite();
    return result;
  }
}

export function hasFinalizers({ metadata }: KubeObject): boolean {
  return (metadata.finalizers ?? []).length > 0;
}

export function keyOf({ namespace, name }: ObjectRef): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

function matches(selector: string, valueOf: (key: string) => unknown): boolean {
  return selector.split(',').every((term) => {
    const [, key = '', operator, value = ''] = /^(.*?)(!?=)(.*)$/.exec(term) ?? [];
    return key === '' || ((valueOf(key) ?? '') === value) === (operator === '=');
  });
}

function valueAt(object: unknown, path: string): unknown {
  return path.split('.').reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], object);
}
