import { omitUndefined } from '../../api/json.js';
import type { KubeObject } from '../../api/meta.js';
import { Cache, type Indexes } from '../../kube/informers/cache.js';
import type { Client } from '../../kube/client.js';
import type { Clock, Random } from '../../kube/clock.js';
import { isForbidden, isNotFound } from '../../kube/errors.js';
import { Informer } from '../../kube/informers/informer.js';
import { type Logger, silentLogger } from '../../kube/log.js';
import { silentMetrics } from '../../kube/metrics.js';
import { type Resource, resourcePath } from '../../kube/resource.js';
import { describeForbidden, describeUnauthorized, qualifiedName, reasonOf } from '../forbidden.js';
import type { PartStatus } from './protocol.js';

/** How often it is asked again whether the user may list a kind, and whether it is served. */
const REFUSED_RETRY_MS = 60_000;
const FAILED_RETRY_MS = 5_000;

interface WatchedKindOptions<T extends KubeObject, S extends KubeObject> {
  readonly resource: Resource<T>;
  readonly transform: (object: T) => S;
  readonly indexes?: Indexes<S>;
  /** Where to look if the user may not list all namespaces. */
  readonly namespace: string;
  /** Called with each object that has changed, after and before the change. */
  readonly onObject?: (object: S) => void;
  /** Do not ask for all namespaces. */
  readonly isNamespaceOnly?: boolean;
}

export interface WatchDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** Called after each change of an object or of a status. */
  readonly onChange: () => void;
}

/** A kind that is watched as far as the user may: in all namespaces, else in one, else not at all. */
export class WatchedKind<T extends KubeObject, S extends KubeObject> {
  readonly #options: WatchedKindOptions<T, S>;
  readonly #deps: WatchDeps;
  readonly #abort = new AbortController();
  readonly #nothing: Cache<S>;
  #informer: Informer<T, S> | undefined;
  #status: PartStatus;
  /** By the clock; progress of the watch after it ends the interruption. */
  #interruptedAt = 0;
  #running: Promise<void> | undefined;
  #probing: Promise<void> | undefined;

  constructor(options: WatchedKindOptions<T, S>, deps: WatchDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#nothing = new Cache(options.indexes);
    this.#status = { resource: qualifiedName(options.resource), state: 'loading' };
  }

  get cache(): Cache<S> {
    return this.#informer?.cache ?? this.#nothing;
  }

  get status(): PartStatus {
    const { message: _message, since: _since, ...recovered } = this.#status;
    const { state, isListed } = recovered;
    const hasRecovered = state === 'interrupted' && (this.#informer?.lastProgress ?? 0) > this.#interruptedAt;
    return hasRecovered && isListed ? { ...recovered, state: 'live' } : this.#status;
  }

  start(): void {
    this.#running ??= this.#run(this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#informer?.stop();
    await Promise.all([this.#running, this.#probing]);
  }

  /** Looks for a scope in which the user may list the kind, until there is one. */
  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const retryMs = await this.#findScope(signal);
      if (retryMs === undefined) return;
      await this.#deps.clock.sleep(retryMs, signal);
    }
  }

  /** @returns when to try again; undefined if the kind is watched */
  async #findScope(signal: AbortSignal): Promise<number | undefined> {
    const { namespace, resource, isNamespaceOnly = false } = this.#options;
    const scopes = [...(isNamespaceOnly ? [] : [undefined]), ...(resource.namespaced ? [namespace] : [])];
    let refusal = '';
    for (const scope of scopes) {
      try {
        await this.#ask(scope, signal);
        if (!signal.aborted) this.#watch(scope);
        return undefined;
      } catch (error) {
        if (isNotFound(error)) {
          this.#setStatus('absent', 'the API server does not serve this kind');
          return REFUSED_RETRY_MS;
        }
        if (!isForbidden(error)) {
          this.#setStatus('interrupted', reasonOf(error));
          return FAILED_RETRY_MS;
        }
        refusal = reasonOf(error);
      }
    }
    this.#setStatus('refused', refusal);
    return REFUSED_RETRY_MS;
  }

  async #ask(namespace: string | undefined, signal: AbortSignal): Promise<void> {
    const path = resourcePath(this.#options.resource, { namespace });
    await this.#deps.client.transport.request({ method: 'GET', path, query: { limit: 1 }, signal });
  }

  /** Ends an interruption when the API server answers again: a watch without changes shows progress only by its next bookmark. */
  async #probe(namespace: string | undefined, signal: AbortSignal): Promise<void> {
    while (this.status.state === 'interrupted' && !signal.aborted) {
      await this.#deps.clock.sleep(FAILED_RETRY_MS, signal);
      const isAnswered = await this.#ask(namespace, signal).then(
        () => !signal.aborted,
        () => false,
      );
      if (isAnswered) this.#setStatus(this.#status.isListed ? 'live' : 'loading', undefined, namespace);
    }
    this.#probing = undefined;
  }

  #watch(namespace: string | undefined): void {
    const { resource, transform, indexes, onObject } = this.#options;
    const { client, clock, random, onChange } = this.#deps;
    const informer = new Informer<T, S>(client, resource, {
      transform,
      optional: true,
      clock,
      random,
      log: this.#interruptionLog(namespace),
      metrics: { ...silentMetrics, listed: () => this.#setListed(namespace) },
      ...(namespace !== undefined && { namespace }),
      ...(indexes !== undefined && { indexes }),
    });
    informer.onChange(({ object, before }) => {
      onObject?.(object);
      if (before !== undefined) onObject?.(before);
      onChange();
    });
    this.#informer = informer;
    informer.start();
  }

  /** The informer reports interruptions of its watch as warnings. */
  #interruptionLog(namespace: string | undefined): Logger {
    const log: Logger = {
      ...silentLogger,
      child: () => log,
      warn: (_fields, message) => {
        this.#interruptedAt = this.#deps.clock.now();
        const why = describeForbidden({ message }) ?? describeUnauthorized(message) ?? message;
        this.#setStatus('interrupted', why, namespace);
        this.#probing ??= this.#probe(namespace, this.#abort.signal);
      },
    };
    return log;
  }

  #setListed(namespace: string | undefined): void {
    this.#status = { ...this.#status, isListed: true };
    this.#setStatus('live', undefined, namespace);
  }

  #setStatus(state: PartStatus['state'], message?: string, namespace?: string): void {
    const { resource, isListed } = this.#status;
    const since = state === 'interrupted' ? (this.status.since ?? this.#deps.clock.wall()) : undefined;
    this.#status = omitUndefined({ resource, state, namespace, message, isListed, since });
    this.#deps.onChange();
  }
}
