import { expect } from 'chai';
import { adminPool } from '../../test/pool-objects.js';
import { TransportError } from '../../kube/errors.js';
import { silentLogger } from '../../kube/log.js';
import { LiveReads } from './freshness.js';

/** An API server that takes a second for each read. */
class Bench {
  now = 100_000;
  readonly #answers: (Error | undefined)[];
  readonly reads = new LiveReads({
    client: { get: (_resource, { name }) => this.#get(name) },
    clock: { now: () => this.now },
    log: silentLogger,
    pool: 'blue',
  });

  constructor(...answers: (Error | undefined)[]) {
    this.#answers = answers;
  }

  async read(): Promise<number> {
    await this.reads.read(new AbortController().signal);
    return this.reads.lastProgress;
  }

  #get(name: string): Promise<never> {
    this.now += 1_000;
    const answer = this.#answers.shift();
    if (answer !== undefined) return Promise.reject(answer);
    return Promise.resolve(adminPool(name) as never);
  }
}

describe('the live reads of a responder', () => {
  it('have shown nothing before the first one', () => {
    expect(new Bench().reads.lastProgress).to.equal(0);
  });

  it('show that etcd answered when the last one began, not when it ended', async () => {
    expect(await new Bench().read()).to.equal(100_000);
  });

  it('show nothing new while etcd does not answer the API server', async () => {
    const bench = new Bench(undefined, new TransportError('deadline', 'GET addresspools: no answer'));
    await bench.read();
    bench.now = 200_000;
    expect(await bench.read()).to.equal(100_000);
    expect(await bench.read()).to.equal(201_000);
  });
});
