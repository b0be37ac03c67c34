import type { Sync } from '../kube/controller-loop.js';

/** One kind of work of this process, with a queue of its own while the process leads. */
export interface Reconciler {
  /** For metrics and logs. */
  readonly name: string;
  /** How many keys are synced at the same time. */
  readonly workers: number;
  /** Registers the handlers that enqueue keys. Called once. */
  listen(add: (keys: Iterable<string>) => void): void;
  /** Starts a term of leadership: nothing of an earlier term is remembered. */
  createSync(): Sync;
  /** The keys to sync at the beginning of a term. A key may come several times. */
  allKeys(): Iterable<string>;
  /** Called when the term has ended and nothing is synced any more. */
  end?(): void;
}
