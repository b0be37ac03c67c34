import { hostname } from 'node:os';
import type { Sync, SyncResult } from '../kube/controller-loop.js';
import { LeaderElection } from '../kube/leader-election.js';
import type { CommonConfig } from './config/config.js';
import type { ProcessContext } from './context.js';
import { setMaxListeners } from 'node:events';
import type { ApiRequest, ClientTransport, StreamRequest } from '../kube/transport/transport.js';

export interface LeadershipOptions {
  readonly context: Pick<ProcessContext, 'client' | 'clock' | 'random' | 'log'> & {
    readonly metrics: Pick<ProcessContext['metrics'], 'setLeading'>;
    readonly informers: Pick<ProcessContext['informers'], 'synced'>;
  };
  readonly config: Pick<CommonConfig, 'leaderElect' | 'namespace'>;
  /** The Lease's name. */
  readonly name: string;
  /** Unique among the candidates. */
  readonly identity: string;
  /** Prepares work, once, after the caches are filled. Until it resolves, this process is no candidate. */
  readonly prepare?: () => Promise<void>;
  /** Starts to work, after the caches are filled. The signal aborts when work must stop, before `end` is called. */
  readonly startWork: (signal: AbortSignal) => void;
  /** Resolves when all work has ended. */
  readonly stopWork: () => Promise<void>;
}

/** A restarted container has the same host name and process ID, and takes its own lease back at once. */
export function leaderIdentity(): string {
  return `${hostname()}_${process.pid}`;
}

/** Lets a component work while it leads and the caches are filled; without leader election, always. */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #stopping = new AbortController();
  #election: LeaderElection | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(options: LeadershipOptions) {
    this.#options = options;
    options.context.metrics.setLeading(options.name, false);
  }

  start(): void {
    this.#working = this.#work();
  }

  /** Ends leadership, if any, and releases the Lease. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#election?.stop();
    await this.#working;
  }

  /** Aborts when another process may lead; undefined without leader election. */
  get leaseLost(): AbortSignal | undefined {
    if (!this.#options.config.leaderElect) return undefined;
    return this.#election?.leaseLost ?? AbortSignal.abort();
  }

  /** Returns the sync, which is not started after the end of the term, and is aborted when another process may lead. */
  whileLeading(sync: Sync): Sync {
    const run = sync as (key: string, signal: AbortSignal) => Promise<SyncResult>;
    const leads = () => !this.#options.config.leaderElect || this.#election?.confirm() === true;
    return async (key, signal) =>
      leads() ? untilEither(this.leaseLost, signal, (either) => run(key, either)) : undefined;
  }

  async #work(): Promise<void> {
    const { context, config, prepare } = this.#options;
    const stopped = new Promise<void>((resolve) => {
      this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([context.informers.synced().then(prepare), stopped]);
    if (this.#stopping.signal.aborted) return;
    if (config.leaderElect) await this.#workAsLeader();
    else {
      this.#begin(this.#stopping.signal);
      await stopped;
      await this.#end();
    }
  }

  #begin(signal: AbortSignal): void {
    const { context, name, startWork } = this.#options;
    context.metrics.setLeading(name, true);
    startWork(signal);
  }

  #end(): Promise<void> {
    const { context, name, stopWork } = this.#options;
    context.metrics.setLeading(name, false);
    return stopWork();
  }

  async #workAsLeader(): Promise<void> {
    const { context, config, name, identity } = this.#options;
    const { client, clock, random, log } = context;
    // by the label, kubectl holdfast finds the Lease
    const labels = { 'app.kubernetes.io/name': 'holdfast' };
    const lease = { namespace: config.namespace, name, labels, identity };
    this.#election = new LeaderElection({ client, ...lease, clock, random, log });
    const callbacks = { onStarted: (signal: AbortSignal) => this.#begin(signal), onStopped: () => this.#end() };
    while (!this.#stopping.signal.aborted) await this.#election.run(callbacks);
  }
}

/** Sends writes only until another process may lead. Reads are always sent: replicas that do not lead fill their caches. */
export class LeaderTransport implements ClientTransport {
  readonly #transport: ClientTransport;
  readonly #leaseLost: () => AbortSignal | undefined;

  /** @param leaseLost aborts when another process may lead; undefined without leader election */
  constructor(transport: ClientTransport, leaseLost: () => AbortSignal | undefined) {
    this.#transport = transport;
    this.#leaseLost = leaseLost;
  }

  request(request: ApiRequest): Promise<unknown> {
    if (request.method === 'GET') return this.#transport.request(request);
    return untilEither(this.#leaseLost(), request.signal, (signal) => this.#transport.request({ ...request, signal }));
  }

  stream(request: StreamRequest): AsyncGenerator<unknown, void, undefined> {
    return this.#transport.stream(request);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}

/** Runs with a signal that aborts when one of both does. AbortSignal.any leaks memory while one of them lives for long. */
export async function untilEither<S extends AbortSignal | undefined, R>(
  first: AbortSignal | undefined,
  second: S,
  run: (signal: AbortSignal | S) => Promise<R>,
): Promise<R> {
  if (first === undefined || second === undefined) return run(first ?? second);
  const either = new AbortController();
  // all requests of a sync listen to it, and Node would report a leak
  setMaxListeners(0, either.signal);
  const abort = () => either.abort();
  for (const signal of [first, second]) {
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
  }
  try {
    return await run(either.signal);
  } finally {
    for (const signal of [first, second]) signal.removeEventListener('abort', abort);
  }
}
