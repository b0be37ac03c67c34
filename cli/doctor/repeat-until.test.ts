import { expect } from 'chai';
import { repeatUntil } from './repeat-until.js';

describe('waiting until nothing is wrong', () => {
  const waitFor = async (timeoutMs: number, fixedAtMs: number) => {
    let now = 1_000;
    const times: number[] = [];
    const clock = {
      now: () => now,
      sleep: (ms: number) => {
        now += ms;
        return Promise.resolve();
      },
    };
    const value = await repeatUntil(timeoutMs, clock, () => {
      times.push(now - 1_000);
      return Promise.resolve({ isEnd: now - 1_000 >= fixedAtMs, value: now - 1_000 >= fixedAtMs });
    });
    return { value, times };
  };

  it('looks once without a time to wait', async () => {
    expect(await waitFor(0, 1)).to.deep.equal({ value: false, times: [0] });
  });

  it('looks every 5 s, and ends as soon as nothing is wrong', async () => {
    expect(await waitFor(60_000, 8_000)).to.deep.equal({ value: true, times: [0, 5_000, 10_000] });
  });

  it('looks a last time when the time is over', async () => {
    expect(await waitFor(7_000, Infinity)).to.deep.equal({ value: false, times: [0, 5_000, 7_000] });
  });
});
