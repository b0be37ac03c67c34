import type { KubeObject } from '../../api/meta.js';
import type { ListOptions } from '../../kube/client.js';
import { type StatusError, isForbidden, isNotFound } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { describeForbidden } from '../forbidden.js';
import type { ObservingClient } from './observed.js';

/** Reads what the user may read, and notes the rest. */
export class PermittedReader {
  readonly client: ObservingClient;
  readonly #refused = new Set<string>();

  constructor(client: ObservingClient) {
    this.client = client;
  }

  /** What the user may not do, in words. */
  get refused(): readonly string[] {
    return [...this.#refused];
  }

  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<T[] | undefined> {
    return this.listAs(resource, (object) => object, options);
  }

  /** @returns undefined if the user may not; an empty list if the API server does not serve the kind */
  async listAs<T extends KubeObject, P>(
    resource: Resource<T>,
    transform: (object: T) => P,
    options: ListOptions = {},
  ): Promise<P[] | undefined> {
    try {
      return (await this.client.listAs(resource, transform, options)).items;
    } catch (error) {
      if (isNotFound(error)) return [];
      if (!isForbidden(error)) throw error;
      this.note(error);
      return undefined;
    }
  }

  note(error: StatusError): void {
    this.#refused.add(describeForbidden(error) ?? error.message);
  }
}
