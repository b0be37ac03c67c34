import { expect } from 'chai';
import { NO_TESTS, addCounts, closingLine, succeeded } from './counts.js';

describe('the counts of a test run', () => {
  it('are added up', () => {
    const sum = addCounts({ passed: 1, failed: 2, skipped: 3 }, { passed: 10, failed: 20, skipped: 30 });
    expect(sum).to.deep.equal({ passed: 11, failed: 22, skipped: 33 });
  });

  it('end the run with a line that scripts can parse', () => {
    expect(closingLine({ passed: 3, failed: 1, skipped: 0 })).to.equal('3 passed, 1 failed');
    expect(closingLine({ passed: 3, failed: 1, skipped: 2 })).to.equal('3 passed, 1 failed, 2 skipped');
  });

  it('are a success only if a test passed and no test failed', () => {
    expect(succeeded({ passed: 1, failed: 0, skipped: 0 })).to.equal(true);
    expect(succeeded({ passed: 1, failed: 1, skipped: 0 })).to.equal(false);
    expect(succeeded(NO_TESTS)).to.equal(false);
  });
});
