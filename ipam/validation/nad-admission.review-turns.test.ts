import { expect } from 'chai';
import { FairSemaphoreError } from '../../kube/fair-semaphore.js';
import { ManualClock } from '../../test/manual-clock.js';
import { ReviewTurns } from './nad-admission.js';

const REVIEW_MS = 50;

function* failingSteps(): Generator<undefined, never> {
  yield;
  throw new TypeError('bad');
}

describe('Reviews that cost CPU time', () => {
  let clock: ManualClock;
  let turns: ReviewTurns;
  let reviewed: string[];

  beforeEach(() => {
    clock = new ManualClock(0);
    turns = new ReviewTurns(clock);
    reviewed = [];
  });

  function review(name: string): Promise<string> {
    return turns.run(name.charAt(0), reviewSteps(name));
  }

  function* reviewSteps(name: string): Generator<undefined, string> {
    reviewed.push(name);
    clock.advanceTo(clock.now() + REVIEW_MS);
    yield;
    return name;
  }

  /** Lets time pass, after everything that is due has run. */
  async function pass(ms: number): Promise<void> {
    clock.advanceTo(clock.now() + ms);
    // a review begins in a turn of its own, and ends in another
    for (let turn = 0; turn < 4; turn++) await new Promise(setImmediate);
  }

  it('take half of the time, and one namespace does not delay another by more than one review', async () => {
    const answers = ['a1', 'a2', 'a3', 'b1'].map(review);
    expect(await answers[0]).to.equal('a1');
    await pass(REVIEW_MS - 1);
    expect(reviewed).to.deep.equal(['a1']);
    await pass(1);
    expect(reviewed).to.have.length(2);
    await pass(REVIEW_MS);
    expect(reviewed.slice(0, 3)).to.include.members(['a1', 'a2', 'b1']);
    await pass(REVIEW_MS);
    expect(await Promise.all(answers)).to.deep.equal(['a1', 'a2', 'a3', 'b1']);
  });

  it('are given up if they wait longer than the API server does', async () => {
    const failures: unknown[] = [];
    for (let n = 0; n < 63; n++) review(`a${n}`).catch((error: unknown) => failures.push(error));
    for (let n = 0; n < 60; n++) await pass(REVIEW_MS);
    expect(reviewed.length).to.be.within(30, 40);
    expect(failures).to.have.length(63 - reviewed.length);
    for (const failure of failures) expect(failure).to.be.instanceOf(FairSemaphoreError);
  });

  it('fail with what they throw, and let the next one run', async () => {
    const failed = turns.run('a', failingSteps());
    const error: unknown = await failed.catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(TypeError);
    expect(await review('a1')).to.equal('a1');
  });
});
