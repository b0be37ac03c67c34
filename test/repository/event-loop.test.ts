import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import { reportUnansweredClaims } from '../../controller/unanswered-claims.js';
import { reportUnhonouredClaims } from '../../ipam/claims/reports/unhonoured-claims.js';
import { reportUnleasedAddresses } from '../../ipam/claims/running/unleased-addresses.js';
import type { Clock } from '../../kube/clock.js';
import { Informer } from '../../kube/informers/informer.js';
import { silentLogger } from '../../kube/log.js';
import { clusterResource } from '../../kube/resource.js';
import { apiError } from '../api-errors.js';
import { claim } from '../objects/workload-objects.js';

const OBJECTS = 60;
/** Of work on one object. */
const WORK_MS = 10;
/** A slice ends after 20 ms, so the third object at the latest begins a new turn. */
const MAX_IN_TURN = 3;
const THINGS = clusterResource<KubeObject>('v1', 'things', 'Thing');

/** Time passes only while objects are worked on. Counts them by the turn of the event loop. */
class BusyClock implements Clock {
  #now = 1_000_000;
  #turn = 0;
  readonly #inTurn = [0];
  #next = setImmediate(() => this.#count());
  #finish: () => void = () => undefined;

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#now;
  }

  sleep(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  setTimer(): () => void {
    return () => undefined;
  }

  work(): void {
    // checks are repeated
    if (this.worked === OBJECTS) return;
    this.#now += WORK_MS;
    this.#inTurn[this.#turn] = (this.#inTurn[this.#turn] ?? 0) + 1;
    if (this.worked === OBJECTS) this.#finish();
  }

  get worked(): number {
    return this.#inTurn.reduce((sum, count) => sum + count, 0);
  }

  /** The most objects in one turn. */
  get most(): number {
    return Math.max(...this.#inTurn);
  }

  /** Resolves when all objects were worked on. */
  done(): Promise<void> {
    return new Promise((resolve) => {
      this.#finish = resolve;
      if (this.worked === OBJECTS) resolve();
    });
  }

  stop(): void {
    clearImmediate(this.#next);
  }

  #count(): void {
    this.#inTurn[++this.#turn] = 0;
    this.#next = setImmediate(() => this.#count());
  }
}

interface Work {
  start(): void;
  stop(): Promise<void>;
}

const names = Array.from({ length: OBJECTS }, (_, index) => `vm${index}`);
const things = names.map((name): KubeObject => ({ metadata: { name, uid: name, resourceVersion: '1' } }));
const claims = names.map((name): IPAMClaim => {
  const { status: _status, ...made } = claim({ name });
  return made;
});
const gate = { isOpen: () => true };
const events = { event: () => undefined };

/** The API server answers from memory, without I/O between events. The first watch has the events and then fails, the next ones wait. */
function clientOf(lists: KubeObject[][], watched: KubeObject[] = []) {
  let watches = 0;
  return {
    listAs: (_: unknown, transform: (object: KubeObject) => unknown) =>
      Promise.resolve({ items: (lists.length > 1 ? lists.shift()! : lists[0]!).map(transform), resourceVersion: '1' }),
    transport: {
      async *stream({ signal }: { signal: AbortSignal }) {
        if (watches++ > 0) await new Promise((resolve) => signal.addEventListener('abort', resolve));
        for (const object of watched) yield await Promise.resolve({ type: 'ADDED', object });
        throw apiError(410, 'Expired', 'too old resource version', 'things');
      },
    },
  };
}

function informerOf(
  clock: BusyClock,
  client: ReturnType<typeof clientOf>,
  type: 'added' | 'removed',
): Informer<KubeObject> {
  const informer = new Informer<KubeObject>(client as never, THINGS, { clock, random: () => 0 });
  informer.onChange((change) => change.type === type && clock.work());
  return informer;
}

/** No NAD is known. */
function networksOf(clock: BusyClock) {
  return {
    get: () => {
      clock.work();
      return undefined;
    },
  };
}

describe('the event loop of a process', () => {
  const rows: { name: string; work: (clock: BusyClock) => Work }[] = [
    { name: 'the first list of an informer', work: (clock) => informerOf(clock, clientOf([things]), 'added') },
    { name: 'objects that a new list lacks', work: (clock) => informerOf(clock, clientOf([things, []]), 'removed') },
    { name: 'the events in one chunk of a watch', work: (clock) => informerOf(clock, clientOf([[]], things), 'added') },
    {
      name: 'claims that ipam has not answered',
      work: (clock) => {
        const networks = networksOf(clock);
        const deps = { claims: { list: () => claims }, networks, events, gate, clock };
        return reportUnansweredClaims({ ...deps, log: silentLogger, afterMs: 60_000 });
      },
    },
    {
      name: 'claims that no IPAM honours',
      work: (clock) => {
        const pods = { podsOf: () => (clock.work(), []) };
        const directory = { resolve: () => expect.fail('no pod has a claim') };
        const deps = { claims: { list: () => claims }, pods, directory, events, gate, clock };
        return reportUnhonouredClaims({ ...deps, log: silentLogger, config: { unhonouredAfterMs: 60_000 } });
      },
    },
    {
      name: 'launchers whose addresses may not be leased',
      work: (clock) => {
        const interfaces = JSON.stringify([{ nad: 'vms/blue', ips: [] }]);
        const running = { isTerminal: false, isRunning: true, claims: [], vmi: { name: 'vm', uid: 'vmi' }, interfaces };
        return reportUnleasedAddresses({
          pods: { list: () => things.map(({ metadata }) => ({ metadata, ...running })) },
          claims: { byIndex: () => [] },
          networks: networksOf(clock),
          directory: { resolveUser: () => expect.fail('no network is known') },
          book: { get: () => undefined },
          ...{ events, clock },
          log: silentLogger,
          config: { collectAfterMs: 60_000 },
          count: () => undefined,
        });
      },
    },
  ];
  for (const { name, work: create } of rows) {
    it(`runs between every few of ${name}`, async () => {
      const clock = new BusyClock();
      const work = create(clock);
      work.start();
      await clock.done();
      await work.stop();
      clock.stop();
      expect(clock.most).to.be.within(1, MAX_IN_TURN);
    });
  }
});
