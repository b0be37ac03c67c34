import { type KubeObject, splitKey } from '../api/meta.js';

/**
 * A kind and its URL on the API server.
 * @typeParam T the fields that Holdfast reads, which are not checked at run time
 */
export interface Resource<T extends KubeObject = KubeObject> {
  /** `''` for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural, as in the URL. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never set; used for type inference. */
  readonly _type?: T;
}

export function namespacedResource<T extends KubeObject>(
  apiVersion: string,
  plural: string,
  kind: string,
): Resource<T> {
  return { ...parseApiVersion(apiVersion), plural, kind, namespaced: true };
}

export function clusterResource<T extends KubeObject>(apiVersion: string, plural: string, kind: string): Resource<T> {
  return { ...parseApiVersion(apiVersion), plural, kind, namespaced: false };
}

function parseApiVersion(apiVersion: string): { group: string; version: string } {
  const { namespace: group, name: version } = splitKey(apiVersion);
  return { group, version };
}

/** Identifies one object. `namespace` is required for namespaced kinds only. */
export interface ObjectRef {
  namespace?: string | undefined;
  name: string;
}

/** Returns the `apiVersion` of a resource's objects. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** Returns the URL path of a group's version, where its kinds are listed too. */
export function groupPath({ group, version }: Pick<Resource, 'group' | 'version'>): string {
  return group === '' ? `/api/${version}` : `/apis/${group}/${version}`;
}

/**
 * Returns the URL path of a collection, an object or its subresource. Without a namespace: the collection of all namespaces.
 * @throws {TypeError} if an object of a namespaced kind has no namespace
 */
export function resourcePath(
  resource: Resource,
  target: { namespace?: string | undefined; name?: string; subresource?: string } = {},
): string {
  const { namespace, name, subresource } = target;
  if (resource.namespaced && name !== undefined && !namespace) {
    throw new TypeError(`${resource.kind} ${name} needs a namespace`);
  }
  const segments = [groupPath(resource)];
  if (resource.namespaced && namespace) segments.push('namespaces', encodeURIComponent(namespace));
  segments.push(resource.plural);
  if (name !== undefined) segments.push(encodeURIComponent(name));
  if (subresource !== undefined) segments.push(subresource);
  return segments.join('/');
}
