import { objectKey, type KubeObject } from '../api/meta.js';
import { messageOf } from '../kube/errors.js';
import type { Logger } from '../kube/log.js';
import { Reflector } from '../kube/reflector.js';
import type { Resource } from '../kube/resource.js';
import type { ProcessContext } from '../process/context.js';

export interface FilteredInformerOptions<T extends KubeObject, P> {
  readonly context: Pick<ProcessContext, 'client' | 'clock' | 'random' | 'log' | 'metrics'>;
  readonly resource: Resource<T>;
  /** Returns what to store of an object; undefined to ignore it. */
  readonly select: (object: T) => P | undefined;
  readonly upsert: (selected: P, key: string) => void;
  readonly remove: (selected: P | undefined, key: string) => void;
  /** Called before the objects of a new list. */
  readonly clear: () => void;
  /** Called after the objects of a list. */
  readonly onListed: () => void;
}

interface SelectedObject<P> {
  readonly key: string;
  readonly selected: P | undefined;
}

/** Watches a kind most of whose objects are ignored. Ignored objects need no memory. */
export class FilteredInformer<T extends KubeObject, P> {
  readonly #reflector: Reflector<T, SelectedObject<P>>;
  readonly #options: FilteredInformerOptions<T, P>;
  readonly #log: Logger;
  #hasSynced = false;

  constructor(options: FilteredInformerOptions<T, P>) {
    const { context, resource } = options;
    const { client, clock, random, log, metrics } = context;
    this.#options = options;
    this.#log = log.child({ resource: resource.plural });
    this.#reflector = new Reflector<T, SelectedObject<P>>({
      client,
      resource,
      transform: (object) => ({ key: objectKey(object), selected: this.#select(object) }),
      store: {
        replace: (projections) => this.#replace(projections),
        upsert: (projection) => this.#upsert(projection),
        remove: ({ key, selected }) => options.remove(selected, key),
      },
      clock,
      random,
      log,
      metrics: metrics.kube,
    });
  }

  /** Whether the first list is complete. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  start(): void {
    this.#reflector.start();
  }

  stop(): Promise<void> {
    return this.#reflector.stop();
  }

  #replace(projections: readonly SelectedObject<P>[]): void {
    const { clear, upsert, onListed } = this.#options;
    clear();
    for (const { key, selected } of projections) if (selected !== undefined) upsert(selected, key);
    this.#hasSynced = true;
    onListed();
  }

  #upsert({ key, selected }: SelectedObject<P>): void {
    const { upsert: keep, remove } = this.#options;
    if (selected === undefined) remove(undefined, key);
    else keep(selected, key);
  }

  #select(object: T): P | undefined {
    try {
      return this.#options.select(object);
    } catch (error) {
      // an invalid object must not stop the others
      this.#log.error(
        { key: objectKey(object), err: error },
        `ignored an object that cannot be read: ${messageOf(error)}`,
      );
      return undefined;
    }
  }
}
