import { expect } from 'chai';
import { slowestOf, summaryOf } from './summary.js';

const COUNTS = { passed: 2, failed: 0, skipped: 1 };

describe('the summary of a test run', () => {
  it('names each phase with its time and counts, then the slowest titles of all phases', () => {
    const check = {
      name: 'check',
      durationMs: 61_234,
      counts: { passed: 1, failed: 0, skipped: 0 },
      slowest: [],
      failures: [],
    };
    const unit = {
      name: 'unit',
      durationMs: 1_000,
      counts: COUNTS,
      slowest: [{ title: 'a b', ms: 120 }],
      failures: [],
    };
    const api = {
      name: 'api',
      durationMs: 9_500,
      counts: COUNTS,
      slowest: [{ title: 'c "before all" hook', ms: 8_040 }],
      failures: [],
    };
    expect(summaryOf([check, unit, api])).to.deep.equal([
      'Phases:',
      '     61 s  check: 1 passed, 0 failed',
      '      1 s  unit: 2 passed, 0 failed, 1 skipped',
      '     10 s  api: 2 passed, 0 failed, 1 skipped',
      'Slowest tests and hooks:',
      '    8.0 s  api: c "before all" hook',
      '    0.1 s  unit: a b',
    ]);
  });

  it('has at most ten titles, the slowest first', () => {
    const titles = Array.from({ length: 30 }, (_, ms) => ({ title: `t${ms}`, ms }));
    expect(slowestOf(titles).map(({ ms }) => ms)).to.deep.equal([29, 28, 27, 26, 25, 24, 23, 22, 21, 20]);
  });

  it('ends with what failed, with at most 20 failures', () => {
    const failures = Array.from({ length: 22 }, (_, i) => `t${i}: expected 1 to equal 2`);
    const lines = summaryOf([{ name: 'unit', durationMs: 0, counts: COUNTS, slowest: [], failures }]);
    expect(lines.slice(2, 4)).to.deep.equal(['Failed:', '  unit: t0: expected 1 to equal 2']);
    expect(lines.slice(-2)).to.deep.equal(['  unit: t19: expected 1 to equal 2', '  and 2 more']);
  });

  it('lists no titles if no phase counts tests', () => {
    const check = { name: 'check', durationMs: 0, counts: COUNTS, slowest: [], failures: [] };
    expect(summaryOf([check])).to.have.length(2);
  });
});
