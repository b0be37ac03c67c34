import { Client } from '../kube/client.js';
import { EventRecorder } from '../kube/events.js';
import type { Component, ProcessContext } from './context.js';
import { LeaderTransport, Leadership, type LeadershipOptions, leaderIdentity } from './leadership.js';

/** What the work of an elected component uses. Logs name the component. The client writes only until another process may lead. */
export interface ElectedContext extends ProcessContext, Pick<Leadership, 'whileLeading'> {
  readonly events: EventRecorder;
}

/** The work of an elected component. What it starts outside of its terms runs in all replicas. */
export interface ElectedWork extends Pick<LeadershipOptions, 'startWork' | 'stopWork'> {
  prepare?(): Promise<void>;
  start?(): Promise<void>;
  ready?(): string | undefined;
  notice?(): string | undefined;
  /** @param ended resolves when the component no longer leads and all its work has ended */
  stop?(ended: Promise<void>): Promise<void>;
}

interface ElectedComponentOptions extends Pick<LeadershipOptions, 'config'> {
  readonly name: string;
  readonly context: ProcessContext;
  /** Unique among the candidates for leadership. */
  readonly identity?: string | undefined;
}

/**
 * Creates a component of which only the leader works. All replicas fill their caches, so that a new leader starts at once. Its Lease and its events
 * have its name with the prefix `holdfast-`.
 */
export function createElectedComponent(
  { name, context: shared, config, identity = leaderIdentity() }: ElectedComponentOptions,
  createWork: (context: ElectedContext) => ElectedWork,
): Component {
  const context = { ...shared, log: shared.log.child({ part: name }) };
  const { informers, metrics } = context;
  const component = `holdfast-${name}`;
  const events = new EventRecorder({ ...context, component, metrics: metrics.kube });
  const client = new Client(new LeaderTransport(shared.client.transport, () => leadership.leaseLost));
  const work = createWork({ ...context, client, events, whileLeading: (sync) => leadership.whileLeading(sync) });
  const leadership = new Leadership({
    ...{ context, config, name: component, identity },
    prepare: async () => work.prepare?.(),
    startWork: (signal) => work.startWork(signal),
    stopWork: () => work.stopWork(),
  });
  return {
    name,
    start: async () => {
      informers.start();
      leadership.start();
      await work.start?.();
    },
    ready: () => informers.ready() ?? work.ready?.(),
    notice: () => work.notice?.(),
    stop: async () => {
      const ended = leadership.stop();
      await Promise.all([ended, work.stop?.(ended)]);
      await events.flush();
    },
  };
}
