import { expect } from 'chai';
import { ManualClock } from '../test/manual-clock.js';
import { PeriodicTask } from './periodic-task.js';

describe('PeriodicTask', () => {
  const settle = () => new Promise<void>((resolve) => setImmediate(resolve));

  it('runs at once and again after each pause, until it is stopped', async () => {
    const clock = new ManualClock(0);
    const runs: number[] = [];
    const task = new PeriodicTask({ clock, pauseMs: 100, run: () => void runs.push(clock.now()) });
    task.start();
    await settle();
    clock.advanceTo(100);
    await settle();
    await task.stop();
    clock.advanceTo(300);
    await settle();
    expect(runs).to.deep.equal([0, 100]);
    task.start();
    await settle();
    await task.stop();
    expect(runs).to.deep.equal([0, 100, 300]);
  });

  it('aborts the signal of a run when it is stopped, and waits for its end', async () => {
    const events: string[] = [];
    const run = (signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          events.push('aborted');
          setImmediate(() => {
            events.push('ended');
            resolve();
          });
        });
      });
    const task = new PeriodicTask({ clock: new ManualClock(0), pauseMs: 100, run });
    task.start();
    await task.stop();
    expect(events).to.deep.equal(['aborted', 'ended']);
  });
});
