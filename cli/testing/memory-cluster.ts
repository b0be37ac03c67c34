import type { KubeObject } from '../../api/meta.js';
import type { Client, ListOptions } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { apiError, checkPreconditions } from '../../test/api-errors.js';
import { mergePatch } from '../../test/merge-patch.js';

/** The objects of an API server, as far as commands read and patch them. */
export class MemoryCluster {
  /** Plurals that the user may not read in all namespaces, or at all if they are cluster-scoped. */
  readonly refused = new Set<string>();
  /** `plural` or `plural?selector` of all reads. */
  readonly reads: string[] = [];
  /** Called before each write. */
  beforeWrite: () => void = () => undefined;
  readonly #objects = new Map<string, KubeObject[]>();
  #version = 100;

  put<T extends KubeObject>({ plural }: Resource<T>, ...objects: T[]): this {
    this.#objects.set(plural, [...(this.#objects.get(plural) ?? []), ...objects]);
    return this;
  }

  /** Replaces the object of that name. */
  change<T extends KubeObject>({ plural }: Resource<T>, name: string, change: (object: T) => T): void {
    const changed = (this.#objects.get(plural) ?? []).map((object): KubeObject => {
      if (object.metadata.name !== name) return object;
      const after = change(structuredClone(object as T));
      after.metadata.resourceVersion = String(++this.#version);
      return after;
    });
    this.#objects.set(plural, changed);
  }

  find<T extends KubeObject>({ plural }: Resource<T>, name: string): T | undefined {
    return this.#objects.get(plural)?.find(({ metadata }) => metadata.name === name) as T | undefined;
  }

  get client(): Pick<Client, 'get' | 'list' | 'listAs' | 'create' | 'patch' | 'delete'> {
    const list = (resource: Resource, options: ListOptions = {}) => Promise.resolve(this.#list(resource, options));
    const client = {
      get: async (resource: Resource, ref: ObjectRef) => Promise.resolve(this.#get(resource, ref)),
      list,
      listAs: async (resource: Resource, transform: (object: KubeObject) => unknown, options?: ListOptions) => {
        const { items, ...rest } = await list(resource, options);
        return { ...rest, items: items.map(transform) };
      },
      patch: async (
        resource: Resource,
        ref: ObjectRef,
        { body }: { body: KubeObject },
        options?: { dryRun?: boolean },
      ) => Promise.resolve(this.#patch(resource, ref, body, options?.dryRun === true)),
    };
    return client as unknown as Pick<Client, 'get' | 'list' | 'listAs' | 'create' | 'patch' | 'delete'>;
  }

  #get(resource: Resource, { namespace, name }: ObjectRef): KubeObject {
    this.reads.push(`${resource.plural}/${name}`);
    this.#check(resource, 'get', namespace);
    const found = this.#objects
      .get(resource.plural)
      ?.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace);
    if (found === undefined) throw apiError(404, 'NotFound', 'not found', name);
    return structuredClone(found);
  }

  #list(resource: Resource, { namespace, labelSelector = '', fieldSelector = '' }: ListOptions) {
    this.reads.push(`${resource.plural}?${labelSelector}${fieldSelector}`);
    this.#check(resource, 'list', namespace);
    const items = (this.#objects.get(resource.plural) ?? []).filter(
      ({ metadata }) => namespace === undefined || metadata.namespace === namespace,
    );
    const selected = items.filter(
      (object) =>
        matches(labelSelector, (key) => object.metadata.labels?.[key]) &&
        matches(fieldSelector, (path) => valueAt(object, path)),
    );
    return { items: structuredClone(selected), resourceVersion: '1' };
  }

  #patch(resource: Resource, ref: ObjectRef, { metadata, ...body }: KubeObject, dryRun: boolean): KubeObject {
    if (!dryRun) this.beforeWrite();
    const found = this.#get(resource, ref);
    checkPreconditions(found, metadata);
    if (dryRun) return found;
    this.change(resource, ref.name, (object) => {
      mergePatch(object, body);
      return object;
    });
    return this.#get(resource, ref);
  }

  #check(resource: Resource, verb: string, namespace: string | undefined): void {
    if (namespace !== undefined || !this.refused.has(resource.plural)) return;
    const message = `User "eve" cannot ${verb} resource "${resource.plural}" in API group "${resource.group}" at the cluster scope`;
    throw new StatusError({ request: verb, status: 403, reason: 'Forbidden', message });
  }
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
