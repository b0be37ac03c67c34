import { expect } from 'chai';
import { ManualClock } from '../test/manual-clock.js';
import { runInSlices } from './run-in-slices.js';

describe('a computation in slices', () => {
  let clock: ManualClock;

  beforeEach(() => {
    clock = new ManualClock(1_000_000);
  });

  /** Steps of 15 ms. */
  function* count(steps: number, seen: () => void = () => undefined): Generator<undefined, number> {
    for (let step = 0; step < steps; step++) {
      clock.advanceTo(clock.now() + 15);
      seen();
      yield;
    }
    return steps;
  }

  it('lets other work of the process run about every 20 ms', async () => {
    let others = 0;
    const seen: number[] = [];
    const work = () => {
      others++;
      next = setImmediate(work);
    };
    let next = setImmediate(work);
    expect(
      await runInSlices(
        count(6, () => seen.push(others)),
        clock,
      ),
    ).to.equal(6);
    clearImmediate(next);
    expect(seen.map((each) => each - (seen[0] ?? 0))).to.deep.equal([0, 0, 1, 1, 2, 2]);
  });

  it('shares the turns of the event loop with other computations, so that each turn has one slice', async () => {
    let turn = 0;
    const work = () => {
      turn++;
      next = setImmediate(work);
    };
    let next = setImmediate(work);
    const seen: number[] = [];
    await Promise.all([1, 2, 3].map(() => runInSlices(count(4, () => seen.push(turn)), clock))); // prettier-ignore
    clearImmediate(next);
    const first = seen[0] ?? 0;
    expect(seen.map((each) => each - first)).to.deep.equal([0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
  });

  it('ends between two steps when its signal aborts', async () => {
    const controller = new AbortController();
    let steps = 0;
    const stop = () => {
      if (++steps === 3) controller.abort();
    };
    expect(await runInSlices(count(6, stop), clock, controller.signal)).to.equal(undefined);
    expect(steps).to.equal(3);
  });

  it('fails as the computation fails', async () => {
    const fail = () => {
      throw new TypeError('broken');
    };
    const failure: unknown = await runInSlices(count(1, fail), clock).catch((error: unknown) => error);
    expect(failure).to.be.instanceOf(TypeError);
  });
});
