import type { KubeObject } from '../../api/meta.js';
import { Client } from '../client.js';
import { type Clock, systemClock } from '../clock.js';
import { type ObjectChange, Informer, type InformerOptions } from '../informers/informer.js';
import { silentMetrics } from '../metrics.js';
import { namespacedResource } from '../resource.js';
import { Transport } from '../transport/transport.js';
import { type FaultServer, type Handler, type Reply, type SeenRequest } from '../../test/https/fault-server.js';

export interface TestObject extends KubeObject {
  size: number;
}

const TEST_OBJECTS = namespacedResource<TestObject>('example.dev/v1', 'things', 'Thing');

export function testObject(name: string, version: number, uid = `uid-${name}`): TestObject {
  const metadata = { name, namespace: 'n', uid, resourceVersion: String(version) };
  return { apiVersion: 'example.dev/v1', kind: 'Thing', metadata, size: version };
}

export function event(type: string, object: unknown): object {
  return { type, object };
}

export function bookmark(version: number): object {
  return event('BOOKMARK', { kind: 'Thing', apiVersion: 'v1', metadata: { resourceVersion: String(version) } });
}

export function list(version: number, ...items: TestObject[]): Reply {
  return { body: { metadata: { resourceVersion: String(version) }, items } };
}

/** A watch on which nothing happens. */
export const QUIET: Reply = { lines: [] };

export function isWatch(request: SeenRequest): boolean {
  return request.query.get('watch') === 'true';
}

export function describeChange(change: ObjectChange<TestObject>): string {
  return `${change.type} ${change.object.metadata.name}@${change.object.metadata.resourceVersion ?? ''}`;
}

/** An informer on a server that breaks on command, and what became of it. */
export class WatchHarness {
  readonly server: FaultServer;
  /** What the informer waited for, in ms; nothing waits in fact. */
  sleeps: number[] = [];
  changes: string[] = [];
  /** How watches ended. */
  ends: string[] = [];
  failures = 0;
  #informer: Informer<TestObject> | undefined;
  readonly #client: Client;

  constructor(server: FaultServer, deadlineMs = 10_000, clock: Clock = systemClock) {
    server.reset();
    this.server = server;
    this.#client = new Client(new Transport(server.credentials(['old', 'new']), { deadlineMs, clock }));
  }

  get informer(): Informer<TestObject> {
    if (this.#informer === undefined) throw new Error('the informer is not started');
    return this.#informer;
  }

  async close(): Promise<void> {
    await this.#informer?.stop();
    await this.#client.transport.close();
  }

  /** Lists and watches are answered in turn, the last of each for ever. */
  start(lists: Reply[], watches: Reply[], options: InformerOptions<TestObject> = {}): void {
    let listed = 0;
    let watched = 0;
    this.startWith(
      (request) =>
        isWatch(request)
          ? (watches[Math.min(watched++, watches.length - 1)] ?? QUIET)
          : (lists[Math.min(listed++, lists.length - 1)] ?? list(0)),
      options,
    );
  }

  startWith(handler: Handler, options: InformerOptions<TestObject> = {}): void {
    this.server.handle(handler);
    this.#informer = new Informer(this.#client, TEST_OBJECTS, {
      clock: this.#impatientClock(),
      random: () => 1,
      metrics: { ...silentMetrics, watchEnded: (_, why) => this.ends.push(why), handlerFailed: () => this.failures++ },
      ...options,
    });
    this.#informer.onChange((change) => this.changes.push(describeChange(change)));
    this.#informer.start();
  }

  /** `list`, or `watch` with where it began. */
  requestSummaries(): string[] {
    return this.server.seen.map((seen) =>
      isWatch(seen) ? `watch ${seen.query.get('resourceVersion') ?? ''}` : 'list',
    );
  }

  /** Resolves when the server has seen so many requests. */
  untilRequests(count: number): Promise<void> {
    return this.server.until(() => this.server.seen.length >= count);
  }

  /** For what the client side does, which the server cannot tell of. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await systemClock.sleep(1);
  }

  #impatientClock(): Clock {
    return {
      ...systemClock,
      sleep: (ms, signal) => {
        this.sleeps.push(Math.round(ms));
        return systemClock.sleep(0, signal);
      },
    };
  }
}
