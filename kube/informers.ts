import type { KubeObject } from '../api/meta.js';
import type { Client } from './client.js';
import type { Clock, Random } from './clock.js';
import { Informer } from './informer.js';
import type { InformerOptions } from './informer.js';
import type { Logger } from './log.js';
import type { KubeMetrics } from './metrics.js';
import type { Resource } from './resource.js';

/** What of a kind is followed, and what of it is kept: one constant for each cache, which is its identity. */
export interface WatchSpec<T extends KubeObject, S extends KubeObject = T> extends Pick<
  InformerOptions<T, S>,
  'namespace' | 'labelSelector' | 'fieldSelector' | 'shrink' | 'indexes' | 'optional'
> {
  readonly resource: Resource<T>;
}

export interface InformerRegistryOptions {
  readonly client: Client;
  readonly log: Logger;
  readonly metrics: KubeMetrics;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * One informer for each {@link WatchSpec} constant, however many parts of the process ask for it. Parts get theirs and register
 * handlers when they are made, start them when they are started, and leave stopping to the process.
 */
export class InformerRegistry {
  readonly #options: InformerRegistryOptions;
  readonly #informers = new Map<object, Informer<never, KubeObject>>();
  readonly #started = new Set<object>();

  constructor(options: InformerRegistryOptions) {
    this.#options = options;
  }

  get<T extends KubeObject, S extends KubeObject = T>(watched: WatchSpec<T, S>): Informer<T, S> {
    const { resource, ...options } = watched;
    const { client, ...rest } = this.#options;
    const known = this.#informers.get(watched) ?? new Informer<T, S>(client, resource, { ...rest, ...options });
    this.#informers.set(watched, known as Informer<never, KubeObject>);
    // The constant is the key, and it alone decides T and S.
    return known as Informer<T, S>;
  }

  /** Starts what was handed out and does not run yet. */
  start(): void {
    for (const [watched, informer] of this.#informers) {
      if (this.#started.has(watched)) continue;
      this.#started.add(watched);
      informer.start();
    }
  }

  /** Resolves once every informer that was handed out has its first full list. */
  async synced(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.synced()));
  }

  /** @returns undefined once every informer has its first full list; else what is missing */
  ready(): string | undefined {
    const { missing } = this;
    return missing.length === 0 ? undefined : `not listed yet: ${missing.join(', ')}`;
  }

  /** @returns the kinds, in the plural, whose first list is not there yet */
  get missing(): string[] {
    return [...this.#informers]
      .filter(([, informer]) => !informer.hasSynced)
      .map(([watched]) => (watched as { resource: Resource }).resource.plural);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }
}
