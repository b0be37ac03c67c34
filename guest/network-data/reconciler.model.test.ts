import { expect } from 'chai';
import fc from 'fast-check';
import { NETWORK_DATA_WRITTEN } from '../../api/names.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { apiError } from '../../test/api-errors.js';
import { MAC, ReconcilerWorld } from '../testing/reconciler-world.js';

const LOST = apiError(500, 'InternalError', 'etcd is away', 'net');

type Answer = 'answered' | 'not carried out' | 'not answered';

/** The API server, which may lose the answer to the next write of a Secret, or the write itself. */
class UnreliableWorld extends ReconcilerWorld {
  nextWrite: Answer = 'answered';

  override create(...given: Parameters<ReconcilerWorld['create']>): ReturnType<ReconcilerWorld['create']> {
    return this.#answer(given[0].plural, () => super.create(...given));
  }

  override patch(...given: Parameters<ReconcilerWorld['patch']>): ReturnType<ReconcilerWorld['patch']> {
    return this.#answer(given[0].plural, () => super.patch(...given));
  }

  async #answer<T>(plural: string, act: () => Promise<T>): Promise<T> {
    const answer = plural === 'secrets' ? this.nextWrite : 'answered';
    if (plural === 'secrets') this.nextWrite = 'answered';
    if (answer === 'not carried out') throw LOST;
    const done = await act();
    if (answer === 'not answered') throw LOST;
    return done;
  }
}

/** One VM with one claim, whose status and lease change independently, and the process. */
class Model {
  readonly #world = new UnreliableWorld();
  #run: Sync = this.#world.reconciler().createSync();
  #options: { secret: string; annotation?: string; macs?: (string | undefined)[] } = { secret: 'net' };
  #leased: string | undefined;
  #starts = 0;
  /** Secrets of which a new leader cannot know: see decision 77. */
  readonly #forgotten = new Set<string>();

  readonly changes = {
    nothing: () => undefined,
    restart: () => this.#restart(),
    'delete Secret': () => this.#world.secrets.clear(),
    rename: () => (this.#options = { secret: this.#options.secret === 'net' ? 'other' : 'net' }),
    'opt out': () => (this.#options = { ...this.#options, annotation: '' }),
    'add interface': () => (this.#options = { ...this.#options, macs: [MAC, undefined] }),
    undo: () => (this.#options = { secret: this.#options.secret }),
  };

  constructor() {
    this.#world.addNetwork('data', [{ cidr: '10.1.0.0/24' }]);
    this.#world.addClaim('data', []);
  }

  /** A claim shows an address before it is leased, or without a lease after a restore. The VM starts when its lease changes. */
  moveClaim(shown: string | undefined, isLeased: boolean): void {
    const world = this.#world;
    const claim = world.claims.get('vms/vm1.data')!;
    world.claims.set({ ...claim, status: { ...claim.status, ips: shown === undefined ? [] : [`${shown}/24`] } });
    world.leases.clear();
    this.#leased = isLeased ? shown : undefined;
    if (this.#leased !== undefined) world.addLease(this.#leased, claim);
    this.#starts += 1;
    world.addVmi(`vmi-${this.#starts}`, undefined);
  }

  async sync(firstWrite: Answer): Promise<void> {
    const { secret, annotation } = this.#options;
    this.#world.addVm('vm1', this.#options);
    this.#world.nextWrite = firstWrite;
    await this.#sync().catch((error: unknown) => expect(error).to.equal(LOST));
    this.#world.nextWrite = 'answered';
    await this.#sync();
    if (annotation === undefined) this.#forgotten.delete(secret);
  }

  check(): void {
    for (const [name, { data }] of this.#world.secrets) {
      if (this.#forgotten.has(name)) continue;
      const text = Buffer.from(data?.networkdata ?? '', 'base64').toString();
      for (const address of text.match(/10\.1\.0\.[567]/g) ?? []) expect(address).to.equal(this.#leased);
    }
  }

  #restart(): void {
    const { secret, annotation } = this.#options;
    const isKnown = annotation === undefined || this.#world.condition(NETWORK_DATA_WRITTEN) !== undefined;
    for (const name of this.#world.secrets.keys()) if (name !== secret || !isKnown) this.#forgotten.add(name);
    this.#run = this.#world.reconciler().createSync();
  }

  async #sync(): Promise<SyncResult> {
    const run = this.#run as (key: string, signal: AbortSignal) => Promise<SyncResult>;
    return run('vms/vm1', new AbortController().signal);
  }
}

const step = fc.record({
  shown: fc.option(fc.constantFrom('10.1.0.5', '10.1.0.6', '10.1.0.7'), { nil: undefined }),
  isLeased: fc.boolean(),
  change: fc.constantFrom(...(Object.keys(new Model().changes) as (keyof Model['changes'])[])),
  firstWrite: fc.constantFrom<Answer>('answered', 'not carried out', 'not answered'),
});

describe('the Secrets with network data, after each sync', () => {
  it('have only addresses that are leased to the claim of the VM, whatever changes, fails or restarts before', async () => {
    const property = fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const model = new Model();
      for (const { shown, isLeased, change, firstWrite } of steps) {
        model.moveClaim(shown, isLeased);
        model.changes[change]();
        await model.sync(firstWrite);
        model.check();
      }
    });
    await fc.assert(property, { numRuns: 300 });
  });
});
