import { hostname } from 'node:os';
import { LeaderElection } from '../kube/leader-election.js';
import type { CommonConfig } from './config.js';
import type { ProcessContext } from './context.js';

export interface LeadershipOptions {
  readonly context: Pick<ProcessContext, 'client' | 'informers' | 'clock' | 'random' | 'log'>;
  readonly config: Pick<CommonConfig, 'leaderElect' | 'namespace'>;
  /** The Lease's name. */
  readonly name: string;
  /** Unique among the candidates. */
  readonly identity: string;
  /** Begins to work. The caches are filled. The signal says that it may not go on, before it is asked to end. */
  readonly startWork: (signal: AbortSignal) => void;
  /** Resolves when nothing is worked on any more. */
  readonly stopWork: () => Promise<void>;
}

/** A container that restarts has the name and the process ID that it had, and takes its own lease back at once. */
export function leaderIdentity(): string {
  return `${hostname()}_${process.pid}`;
}

/** Lets a part work while it leads, once the caches are filled; without leader election, all the time. */
export class Leadership {
  readonly #options: LeadershipOptions;
  readonly #stopping = new AbortController();
  #election: LeaderElection | undefined;
  #working: Promise<void> = Promise.resolve();

  constructor(options: LeadershipOptions) {
    this.#options = options;
  }

  start(): void {
    this.#working = this.#work();
  }

  /** Ends the term, if there is one, and gives the Lease up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#election?.stop();
    await this.#working;
  }

  async #work(): Promise<void> {
    const { context, config, startWork, stopWork } = this.#options;
    const stopped = new Promise<void>((resolve) => {
      this.#stopping.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    await Promise.race([context.informers.synced(), stopped]);
    if (this.#stopping.signal.aborted) return;
    if (config.leaderElect) await this.#workAsLeader();
    else {
      startWork(this.#stopping.signal);
      await stopped;
      await stopWork();
    }
  }

  async #workAsLeader(): Promise<void> {
    const { context, config, name, identity, startWork, stopWork } = this.#options;
    const { client, clock, random, log } = context;
    const lease = { namespace: config.namespace, name, identity };
    this.#election = new LeaderElection({ client, ...lease, clock, random, log });
    while (!this.#stopping.signal.aborted) await this.#election.run({ onStarted: startWork, onStopped: stopWork });
  }
}
