import { expect } from 'chai';
import { StatusError, TransportError, type TransportFault } from './errors.js';
import { type RetryDecision, backoff, planRetry } from './retry.js';

const none = { refreshed: false, resent: false, refusals: 0 };
const resent = { ...none, resent: true };

function status(code: number, retryAfterMs?: number): StatusError {
  return new StatusError({ request: 'r', status: code, reason: 'R', message: 'm', retryAfterMs });
}

function fault(kind: TransportFault): TransportError {
  return new TransportError(kind, 'm');
}

describe('planRetry', () => {
  const cases: { name: string; error: Error; readOnly?: boolean; attempts?: typeof none; expect: RetryDecision }[] = [
    { name: 'refreshes credentials after a 401', error: status(401), expect: 'refresh' },
    { name: 'but once', error: status(401), attempts: { ...none, refreshed: true }, expect: undefined },
    { name: 'repeats a read after 429', error: status(429, 1000), readOnly: true, expect: { after: 1000 } },
    { name: 'repeats a write after 429, which was not acted upon', error: status(429, 1000), expect: { after: 1000 } },
    { name: 'repeats a read after 503', error: status(503, 1000), readOnly: true, expect: { after: 1000 } },
    { name: 'does not repeat a write after 503', error: status(503, 1000), expect: undefined },
    { name: 'waits with backoff if the server requests 0 seconds', error: status(429, 0), expect: { after: 50 } },
    {
      name: 'waits longer each time, up to half a second or a second',
      ...{ error: status(429, 0), attempts: { ...none, refusals: 9 }, expect: { after: 500 } },
    },
    { name: 'does not guess where there is no Retry-After', error: status(429), readOnly: true, expect: undefined },
    { name: 'does not wait beyond the deadline', error: status(429, 5000), readOnly: true, expect: undefined },
    { name: 'does not repeat other refusals', error: status(500, 10), readOnly: true, expect: undefined },
    { name: 'repeats a broken read at once', error: fault('broken'), readOnly: true, expect: { after: 0 } },
    { name: 'repeats a read only once', error: fault('broken'), readOnly: true, attempts: resent, expect: undefined },
    { name: 'does not repeat a write that may have been received', error: fault('broken'), expect: undefined },
    { name: 'repeats a write that cannot have been received', error: fault('unsent'), expect: { after: 50 } },
    { name: 'gives up at the deadline', error: fault('deadline'), readOnly: true, expect: undefined },
    { name: 'gives up when the caller does', error: fault('aborted'), readOnly: true, expect: undefined },
  ];
  for (const { name, error, readOnly = false, attempts = none, expect: expected } of cases) {
    it(name, () => {
      expect(planRetry(error, { readOnly, remainingMs: 4000, random: () => 0 }, attempts)).to.deep.equal(expected);
    });
  }
});

function delays(options: Parameters<typeof backoff>[0], count: number): number[] {
  const delay = backoff(options);
  return Array.from({ length: count }, () => delay.next());
}

describe('backoff', () => {
  const cases = [
    { name: 'doubles up to its limit', given: { random: () => 1 }, expect: [100, 200, 400, 500, 500] },
    { name: 'takes at most half of a delay away', given: { random: () => 0 }, expect: [50, 100, 200, 250, 250] },
    { name: 'grows by another factor', given: { random: () => 1, factor: 1.5 }, expect: [100, 150, 225, 337.5, 500] },
  ];
  for (const { name, given, expect: expected } of cases) {
    it(name, () => {
      expect(delays({ baseMs: 100, maxMs: 500, ...given }, 5)).to.deep.equal(expected);
    });
  }

  it('starts again after a reset', () => {
    const delay = backoff({ baseMs: 100, maxMs: 500, random: () => 1 });
    delay.next();
    delay.next();
    delay.reset();
    expect(delay.next()).to.equal(100);
  });
});
