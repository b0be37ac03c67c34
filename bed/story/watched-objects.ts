import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import { Reflector } from '../../kube/informers/reflector.js';
import type { Resource } from '../../kube/resource.js';

interface WatchedObjects<T> {
  readonly namespace?: string;
  readonly see: (object: T) => void;
  /** By default, each object of a list is seen. */
  readonly list?: (objects: readonly T[]) => void;
  readonly remove?: (object: T) => void;
}

/** Watches whole objects of a kind. */
export function watchObjects<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  { namespace, see, list = (objects) => objects.forEach(see), remove = () => undefined }: WatchedObjects<T>,
): Reflector<T> {
  const store = { replace: list, upsert: see, remove };
  return new Reflector({ client, resource, namespace, transform: (object) => object, store });
}
