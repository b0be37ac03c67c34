import type { KubeObject } from '../api/meta.js';

/**
 * Where a kind lives on the API server.
 * @typeParam T the shape that Holdfast reads; the type parameter is a claim about the server, checked by nobody at run time.
 */
export interface Resource<T extends KubeObject = KubeObject> {
  /** `''` for the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural, as in the URL. */
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never set: carries T for inference. */
  readonly _type?: T;
}

/** Names one object. `namespace` is required exactly for namespaced kinds. */
export interface ObjectRef {
  namespace?: string | undefined;
  name: string;
}

/** The `apiVersion` of a resource's objects. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/**
 * The URL path of a collection, an object or its subresource. Without a namespace, the collection over all namespaces.
 * @throws {TypeError} where an object of a namespaced kind is named without its namespace
 */
export function resourcePath(
  resource: Resource,
  target: { namespace?: string | undefined; name?: string; subresource?: string } = {},
): string {
  const { namespace, name, subresource } = target;
  if (resource.namespaced && name !== undefined && !namespace) {
    throw new TypeError(`${resource.kind} ${name} is named without its namespace`);
  }
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const segments = [root];
  if (resource.namespaced && namespace) segments.push('namespaces', encodeURIComponent(namespace));
  segments.push(resource.plural);
  if (name !== undefined) segments.push(encodeURIComponent(name));
  if (subresource !== undefined) segments.push(subresource);
  return segments.join('/');
}
