import { splitKey } from '../../api/meta.js';
import type { ObjectChange } from '../../kube/informer.js';
import type { ClaimQuota } from '../transforms.js';

/**
 * The workloads whose claims a quota rejects, in the order in which they came. Only the first one of a namespace tries again: if it succeeds, it
 * wakes the next. So a namespace costs one rejected write at a time, however many workloads wait in it.
 */
export class QuotaWaits {
  readonly #byNamespace = new Map<string, Set<string>>();
  readonly #wake: (key: string) => void;

  /** @param wake syncs a workload, `namespace/name`, at once */
  constructor(wake: (key: string) => void) {
    this.#wake = wake;
  }

  /** A workload that waits already keeps its place. @returns true if it is the first one, which tries again */
  join(key: string): boolean {
    const { namespace } = splitKey(key);
    const waiting = this.#byNamespace.get(namespace) ?? new Set<string>();
    this.#byNamespace.set(namespace, waiting.add(key));
    return this.#firstOf(namespace) === key;
  }

  /** The quota no longer rejects a claim of the workload: the next one may have room too. */
  leave(key: string): void {
    const { namespace } = splitKey(key);
    const waiting = this.#byNamespace.get(namespace);
    const wasFirst = this.#firstOf(namespace) === key;
    waiting?.delete(key);
    if (waiting?.size === 0) this.#byNamespace.delete(namespace);
    if (wasFirst) this.#wakeFirst(namespace);
  }

  quotaChanged({ type, object, before }: ObjectChange<ClaimQuota>): void {
    if (type !== 'changed' || object.claims !== before?.claims) this.#wakeFirst(object.metadata.namespace ?? '');
  }

  #wakeFirst(namespace: string): void {
    const first = this.#firstOf(namespace);
    if (first !== undefined) this.#wake(first);
  }

  #firstOf(namespace: string): string | undefined {
    const [first] = this.#byNamespace.get(namespace) ?? [];
    return first;
  }
}
