import { expect } from 'chai';
import { ManualClock } from '../test/manual-clock.js';
import { TurnCounter } from '../test/turn-counter.js';
import { TimeSlice, runInSlices } from './run-in-slices.js';

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

  /** Runs so many computations of six steps at once. @returns the number of steps in each turn of the event loop that had some */
  async function stepsPerTurn(computations: number): Promise<number[]> {
    const counter = new TurnCounter();
    const steps = new Map<number, number>();
    const seen = () => void steps.set(counter.turns, (steps.get(counter.turns) ?? 0) + 1);
    const runs = Array.from({ length: computations }, () => runInSlices(count(6, seen), clock));
    expect(await Promise.all(runs)).to.deep.equal(Array(computations).fill(6));
    counter.stop();
    return [...steps.values()];
  }

  it('lets other work of the process run about every 20 ms', async () => {
    expect(await stepsPerTurn(1)).to.deep.equal([2, 2, 2]);
  });

  it('shares the turns of the event loop with other computations, so that each turn has one slice', async () => {
    expect(await stepsPerTurn(3)).to.deep.equal([2, 2, 2, 2, 2, 2, 2, 2, 2]);
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

describe('slices of the event loop', () => {
  const clock = new ManualClock(1_000_000);

  /** Resolves when the event loop has done all that waits now. */
  const turn = () => new Promise((resolve) => setImmediate(resolve));

  it('share their time if they begin in one turn, so that their sum is no longer than one slice', async () => {
    const first = new TimeSlice(clock);
    clock.advanceTo(clock.now() + 20);
    expect([first.isOver, new TimeSlice(clock).isOver]).to.deep.equal([true, true]);
    await turn();
    expect([first.isOver, new TimeSlice(clock).isOver]).to.deep.equal([false, false]);
  });

  it('are given to one of several waiting workers after the other', async () => {
    const slice = new TimeSlice(clock);
    let turns = 0;
    const renewedIn: number[] = [];
    const workers = [1, 2, 3].map(async () => {
      await slice.renew();
      renewedIn.push(turns);
    });
    while (renewedIn.length < 3) {
      await turn();
      turns++;
    }
    await Promise.all(workers);
    expect(new Set(renewedIn).size).to.equal(3);
  });
});
