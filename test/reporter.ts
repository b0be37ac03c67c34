import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';
import type { TestCounts } from './counts.js';

/** Prints like mocha's `spec`, and at the end writes {@link TestCounts} as JSON to the file that the option `counts` names. */
export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { counts: path } = (options.reporterOptions ?? {}) as { counts?: string };
    if (path === undefined) throw new TypeError('the reporter needs --reporter-option counts=<file>');
    runner.once('end', () => {
      const { passes, failures, pending } = this.stats;
      const counts: TestCounts = { passed: passes, failed: failures, skipped: pending };
      writeFileSync(path, JSON.stringify(counts));
    });
  }
}
