import sinon from 'sinon';
import { MemoryTransport } from './memory-transport.js';
import { Client } from '../client.js';
import { systemClock } from '../clock.js';
import { EVENTS, type Event, EventRecorder, type EventSubject } from '../events.js';
import { silentLogger } from '../log.js';
import { silentMetrics } from '../metrics.js';
import { FAKED } from './fake-time.js';

export const MINUTE = 60_000;

export function vm(name: string, namespace?: string): EventSubject {
  const metadata = { name, uid: `uid-${name}`, resourceVersion: '7' };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: namespace === undefined ? metadata : { ...metadata, namespace },
  };
}

/** A recorder that writes into memory, at a time that the test sets. */
export class EventHarness {
  readonly time = sinon.useFakeTimers({ now: Date.UTC(2030, 0, 1), toFake: FAKED });
  readonly api = new MemoryTransport();
  /** Why events were dropped. */
  readonly dropped: string[] = [];
  readonly recorder: EventRecorder;
  #draws = 0;

  constructor(queueSize?: number) {
    this.recorder = new EventRecorder({
      client: new Client(this.api),
      component: 'holdfast-controller',
      clock: systemClock,
      log: silentLogger,
      random: () => (this.#draws++ % 1000) / 1000,
      metrics: { ...silentMetrics, eventDropped: (why) => this.dropped.push(why) },
      ...(queueSize !== undefined && { queueSize }),
    });
  }

  warn(subject: EventSubject, message = 'text'): void {
    this.recorder.event(subject, 'Warning', 'Reason', message);
  }

  written(): Event[] {
    return [...this.api.tracker.objects(EVENTS).values()];
  }

  async flush(): Promise<void> {
    const flushed = this.recorder.flush();
    await this.time.runAllAsync();
    await flushed;
  }
}
