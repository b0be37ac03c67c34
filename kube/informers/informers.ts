import type { KubeObject } from '../../api/meta.js';
import type { Client } from '../client.js';
import type { Clock, Random } from '../clock.js';
import type { HistoryGuard } from './history-guard.js';
import { type InformerOptions, Informer } from './informer.js';
import type { Logger } from '../log.js';
import type { KubeMetrics } from '../metrics.js';
import type { Resource } from '../resource.js';

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

const ALWAYS = () => true;

/**
 * Creates one informer for each {@link WatchSpec} constant, which all components of the process share. Components get their informers and
 * register handlers when they are created, and start them when they are started. The process stops them.
 */
export class InformerRegistry {
  readonly #options: InformerRegistryOptions;
  readonly #informers = new Map<object, Informer<never, KubeObject>>();
  readonly #started = new Set<object>();
  /** Each says whether one of the components that share an informer needs it now. */
  readonly #needs = new Map<object, Set<() => boolean>>();
  #isStarted = false;

  constructor(options: InformerRegistryOptions) {
    this.#options = options;
  }

  get<T extends KubeObject, S extends KubeObject = T>(watched: WatchSpec<T, S>): Informer<T, S> {
    return this.getWhile(watched, ALWAYS);
  }

  /**
   * Returns an informer that watches only while somebody needs it. Call {@link update} when `isNeeded` may have changed. Without a watch its cache
   * is empty or old, and `hasSynced` is false.
   */
  getWhile<T extends KubeObject, S extends KubeObject = T>(
    watched: WatchSpec<T, S>,
    isNeeded: () => boolean,
  ): Informer<T, S> {
    this.#needs.set(watched, (this.#needs.get(watched) ?? new Set()).add(isNeeded));
    const { resource, ...options } = watched;
    const { client, ...rest } = this.#options;
    const known = this.#informers.get(watched) ?? new Informer<T, S>(client, resource, { ...rest, ...options });
    this.#informers.set(watched, known as Informer<never, KubeObject>);
    // The constant is the key, and it determines T and S.
    return known as Informer<T, S>;
  }

  /** Starts all informers that were created, are needed and do not run yet. */
  start(): void {
    this.#isStarted = true;
    this.update();
  }

  /** Starts the informers that are needed now, and ends the watches of the others. Call it when a need has changed. */
  update(): void {
    if (!this.#isStarted) return;
    for (const [watched, informer] of this.#informers) {
      const isNeeded = this.#isNeeded(watched);
      if (isNeeded === this.#started.has(watched)) continue;
      if (isNeeded) {
        this.#started.add(watched);
        informer.start();
      } else {
        this.#started.delete(watched);
        informer.suspend();
      }
    }
  }

  #isNeeded(watched: object): boolean {
    return [...(this.#needs.get(watched) ?? [])].some((isNeeded) => isNeeded());
  }

  /** Resolves when every needed informer has its first complete list. */
  async synced(): Promise<void> {
    // a first list may show that others are needed
    while (this.missing.length > 0) await Promise.all(this.#needed().map(([, informer]) => informer.synced()));
  }

  /** @returns undefined when every needed informer has its first complete list; otherwise the missing kinds */
  ready(): string | undefined {
    const { missing } = this;
    return missing.length === 0 ? undefined : `not listed yet: ${missing.join(', ')}`;
  }

  /** @returns the kinds, in the plural, that are needed and not listed yet */
  get missing(): string[] {
    return this.#needed()
      .filter(([, informer]) => !informer.hasSynced)
      .map(([watched]) => (watched as { resource: Resource }).resource.plural);
  }

  #needed() {
    return [...this.#informers].filter(([watched]) => this.#isNeeded(watched));
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stop()));
  }
}
