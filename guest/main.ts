import { EventRecorder } from '../kube/events.js';
import { ControllerLoop } from '../kube/controller-loop.js';
import { WorkQueue } from '../kube/workqueue.js';
import type { Component } from '../process/component.js';
import type { GuestConfig } from '../process/guest-config.js';
import type { ProcessContext } from '../process/context.js';
import { Leadership, leaderIdentity } from '../process/leadership.js';
import { ResponderReconciler } from './responder-manager/reconciler.js';
import { ServedConditions } from './responder-manager/served-conditions.js';
import { RESPONDER_SETS } from './responder-manager/watch-specs.js';
import { createGuestViews } from './views.js';
import { createGuestMetrics } from './metrics.js';
import type { Reconciler } from './reconciler.js';
import { WorkloadReconciler } from './workload-reconciler.js';

const NAME = 'holdfast-guest';

/**
 * Gives guests the addresses of their claims, and reports what guests have. All replicas fill their caches, and only the leader works.
 * @param identity unique among the candidates for leadership
 */
export function createGuest(context: ProcessContext, config: GuestConfig, identity = leaderIdentity()): Component {
  return new Guest(context, config, identity);
}

/** The queue of one reconciler, and its workers, during one term of leadership. */
interface Loop {
  readonly queue: WorkQueue;
  readonly loop: ControllerLoop;
}

class Guest implements Component {
  readonly name = 'guest';
  readonly #context: ProcessContext;
  readonly #events: EventRecorder;
  readonly #leadership: Leadership;
  readonly #reconcilers: readonly Reconciler[];
  readonly #loops = new Map<Reconciler, Loop>();

  constructor(shared: ProcessContext, config: GuestConfig, identity: string) {
    const { client, clock, random, metrics } = shared;
    const log = shared.log.child({ part: this.name });
    this.#context = { ...shared, log };
    this.#events = new EventRecorder({ client, component: NAME, clock, random, log, metrics: metrics.kube });
    const guestMetrics = createGuestMetrics(metrics);
    const views = createGuestViews(this.#context, config);
    const { informers } = shared;
    this.#reconcilers = [
      new WorkloadReconciler({ views, client, config, clock, events: this.#events, metrics: guestMetrics }),
      new ResponderReconciler({ views, informers, client, config, events: this.#events }),
      new ServedConditions({ views, sets: informers.get(RESPONDER_SETS), client, clock }),
    ];
    this.#leadership = new Leadership({
      context: this.#context,
      config,
      name: NAME,
      identity,
      startWork: () => this.#beginTerm(),
      stopWork: () => this.#endTerm(),
    });
    for (const reconciler of this.#reconcilers)
      reconciler.listen((keys) => void this.#loops.get(reconciler)?.queue.addAll(keys));
  }

  start(): Promise<void> {
    this.#context.informers.start();
    this.#leadership.start();
    return Promise.resolve();
  }

  ready(): string | undefined {
    return this.#context.informers.ready();
  }

  async stop(): Promise<void> {
    await this.#leadership.stop();
    await this.#events.flush();
  }

  #beginTerm(): void {
    const { clock, random, log, metrics } = this.#context;
    for (const reconciler of this.#reconcilers) {
      const name = `guest-${reconciler.name}`;
      const { workers } = reconciler;
      const queue = new WorkQueue({ name, clock, random, metrics: metrics.kube, workers });
      const sync = this.#leadership.whileLeading(reconciler.createSync());
      const loop = new ControllerLoop({ name, queue, workers, sync, log, clock, metrics: metrics.kube });
      this.#loops.set(reconciler, { queue, loop });
      loop.start();
      void queue.addAll(reconciler.allKeys());
    }
  }

  async #endTerm(): Promise<void> {
    const loops = [...this.#loops.values()];
    this.#loops.clear();
    await Promise.all(loops.map(({ loop }) => loop.stop()));
    for (const reconciler of this.#reconcilers) reconciler.end?.();
  }
}
