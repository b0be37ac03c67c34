import { ControllerLoop } from '../kube/controller-loop.js';
import { WorkQueue } from '../kube/workqueue.js';
import type { Component, ProcessContext } from '../process/context.js';
import { type ElectedContext, type ElectedWork, createElectedComponent } from '../process/elected-component.js';
import { type GuestConfig, responderStalenessMs } from '../process/config/guest-config.js';
import { RESPONDER_SETS, ResponderReconciler } from './responder-manager/reconciler.js';
import { ServedConditions } from './responder-manager/served-conditions.js';
import { indexNames } from './responder-tables/published-index.js';
import { TableIndexes } from './responder-tables/table-indexes.js';
import { TablePublisher } from './responder-tables/publisher.js';
import { type Reconciler, createGuestViews } from './views.js';
import { createGuestMetrics } from './metrics.js';
import { WorkloadReconciler } from './workload-reconciler.js';

/** Gives guests the addresses of their claims, and reports what guests have. */
export function createGuest(context: ProcessContext, config: GuestConfig): Component {
  return createElectedComponent({ name: 'guest', context, config }, (elected) => new Guest(elected, config));
}

/** The queue of one reconciler, and its workers, during one term of leadership. */
interface Loop {
  readonly queue: WorkQueue;
  readonly loop: ControllerLoop;
}

class Guest implements ElectedWork {
  readonly #context: ElectedContext;
  readonly #reconcilers: readonly Reconciler[];
  readonly #loops = new Map<Reconciler, Loop>();

  constructor(context: ElectedContext, config: GuestConfig) {
    const { client, clock, log, informers, events } = context;
    this.#context = context;
    const metrics = createGuestMetrics(context.metrics);
    const views = createGuestViews(context, config);
    const sets = informers.get(RESPONDER_SETS);
    const maxStalenessMs = responderStalenessMs(config);
    const names = indexNames(config.maxResponderPools);
    const indexes: TableIndexes = new TableIndexes({
      client,
      log,
      maxStalenessMs,
      names,
      current: (index) => tables.current(index),
    });
    const published = { indexes: names, beatOf: (index: string) => indexes.beatOf(index) };
    const tables = new TablePublisher({ views, informers, sets, client, clock, events, maxStalenessMs, ...published });
    this.#reconcilers = [
      new WorkloadReconciler({ views, client, config, clock, events, metrics }),
      new ResponderReconciler({ views, informers, client, config, clock, events, metrics }),
      new ServedConditions({ views, sets, client, clock }),
      tables,
      indexes,
    ];
    for (const reconciler of this.#reconcilers)
      reconciler.listen((keys) => void this.#loops.get(reconciler)?.queue.addAll(keys));
  }

  startWork(): void {
    const { clock, random, log, metrics } = this.#context;
    for (const reconciler of this.#reconcilers) {
      const name = `guest-${reconciler.name}`;
      const { workers } = reconciler;
      const queue = new WorkQueue({ name, clock, random, metrics: metrics.kube, workers });
      const sync = this.#context.whileLeading(reconciler.createSync());
      const loop = new ControllerLoop({ name, queue, workers, sync, log, clock, metrics: metrics.kube });
      this.#loops.set(reconciler, { queue, loop });
      loop.start();
      void queue.addAll(reconciler.allKeys(), 'low');
    }
  }

  async stopWork(): Promise<void> {
    const loops = [...this.#loops.values()];
    this.#loops.clear();
    await Promise.all(loops.map(({ loop }) => loop.stop()));
    for (const reconciler of this.#reconcilers) reconciler.end?.();
  }
}
