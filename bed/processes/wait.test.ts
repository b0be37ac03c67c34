import { expect } from 'chai';
import { pauseAfter, until, untilValue, waitLonger } from './wait.js';

async function failureOf(waiting: Promise<unknown>): Promise<string> {
  return waiting.then(
    () => 'it did not fail',
    (error: unknown) => (error as Error).message,
  );
}

const QUICK = { timeoutMs: 30, everyMs: 1 };

describe('Waiting', () => {
  it('returns the result of the probe', async () => {
    const finds = [undefined, null, false, 'found'];
    expect(await until('something', () => finds.shift(), { everyMs: 1 })).to.equal('found');
  });

  it('accepts zero and the empty string as results', async () => {
    expect(await until('a number', () => 0, QUICK)).to.equal(0);
    expect(await until('a text', () => '', QUICK)).to.equal('');
  });

  it('continues if the probe throws', async () => {
    let tries = 0;
    const probe = () => {
      if (++tries < 3) throw new Error('not yet');
      return tries;
    };
    expect(await until('the third try', probe, { everyMs: 1 })).to.equal(3);
  });

  it('names the awaited condition and the last result in its error', async () => {
    expect(await failureOf(until('a sign', () => undefined, QUICK))).to.equal(
      'waited 30 ms for a sign; last seen: undefined',
    );
    const failing = until('a sign', () => Promise.reject(new Error('404')), QUICK);
    expect(await failureOf(failing)).to.equal('waited 30 ms for a sign; last error: 404');
  });

  it('shows the last wrong value in its error', async () => {
    const waiting = untilValue(
      'phase Running',
      () => ({ phase: 'Pending' }),
      ({ phase }) => phase === 'Running',
      QUICK,
    );
    expect(await failureOf(waiting))
      .to.include('phase Running')
      .and.to.include('{"phase":"Pending"}');
  });

  it('shows the status of a large object, without its managedFields', async () => {
    const managedFields = [{ manager: 'virt-controller' }];
    const vmi = { metadata: { name: 'vm1', managedFields }, spec: 'x'.repeat(3_000), status: { phase: 'Scheduling' } };
    const waiting = untilValue(
      'VMI vm1 to run',
      () => vmi,
      () => false,
      QUICK,
    );
    const message = await failureOf(waiting);
    expect(message).to.include('"name":"vm1"}').and.include('"status":{"phase":"Scheduling"}');
    expect(message).not.to.include('virt-controller');
    expect(message.length).to.be.lessThan(2_000);
  });

  it('probes less often the longer it takes, at least four times a second', () => {
    expect([0, 400, 800, 60_000].map(pauseAfter)).to.deep.equal([50, 50, 100, 250]);
  });

  it('takes longer where only the result matters', async () => {
    waitLonger(3);
    const failure = await failureOf(until('a sign', () => undefined, QUICK)).finally(() => waitLonger(1));
    expect(failure).to.equal('waited 90 ms for a sign; last seen: undefined');
  });

  it('ends early if its signal aborts', async () => {
    const abort = new AbortController();
    abort.abort(new Error('never mind'));
    const waiting = until('nothing', () => undefined, { signal: abort.signal });
    expect(await failureOf(waiting)).to.equal('never mind');
  });
});
