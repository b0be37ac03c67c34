import type { KubeObject } from '../api/meta.js';
import type { Client } from './client.js';
import type { Clock, Random } from './clock.js';
import type { HistoryGuard } from './history-guard.js';
import { type InformerOptions, Informer } from './informer.js';
import type { Logger } from './log.js';
import type { KubeMetrics } from './metrics.js';
import type { Resource } from './resource.js';

/** What a watch covers and what its cache keeps. There is one constant per cache, which identifies it. */
export interface WatchSpec<T extends KubeObject, S extends KubeObject = T> extends Pick<
  InformerOptions<T, S>,
  'namespace' | 'labelSelector' | 'fieldSelector' | 'transform' | 'indexes' | 'optional' | 'watchSeconds' | 'relistMs'
> {
  readonly resource: Resource<T>;
}

interface InformerRegistryOptions {
  readonly client: Client;
  readonly log: Logger;
  readonly metrics: KubeMetrics;
  readonly clock: Clock;
  readonly random: Random;
  readonly history?: HistoryGuard;
}

/**
 * Creates one informer for each {@link WatchSpec} constant, which all components of the process share. Components get their informers and
 * register handlers when they are created, and start them when they are started. The process stops them.
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
    // The constant is the key, and it determines T and S.
    return known as Informer<T, S>;
  }

  /** Starts all informers that were created and do not run yet. */
  start(): void {
    for (const [watched, informer] of this.#informers) {
      if (this.#started.has(watched)) continue;
      this.#started.add(watched);
      informer.start();
    }
  }

  /** Resolves when every created informer has its first complete list. */
  async synced(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.synced()));
  }

  /** @returns undefined when every informer has its first complete list; otherwise the missing kinds */
  ready(): string | undefined {
    const { missing } = this;
    return missing.length === 0 ? undefined : `not listed yet: ${missing.join(', ')}`;
  }

  /** @returns the kinds, in the plural, that are not listed yet */
  get missing(): string[] {
    return [...this.#informers]
      .filter(([, informer]) => !informer.hasSynced)
      .map(([watched]) => (watched as { resource: Resource }).resource.plural);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }
}
