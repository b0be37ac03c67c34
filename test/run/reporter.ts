import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';
import { type PhaseResult, type TimedTitle, slowestOf } from './summary.js';

const { EVENT_HOOK_END, EVENT_TEST_END } = Mocha.Runner.constants;

/** Prints like mocha's `spec`, and at the end writes counts and slowest titles as JSON to the file that the option `result` names. */
export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { result: path } = (options.reporterOptions ?? {}) as { result?: string };
    if (path === undefined) throw new TypeError('the reporter needs --reporter-option result=<file>');
    const titles: TimedTitle[] = [];
    for (const event of [EVENT_TEST_END, EVENT_HOOK_END])
      runner.on(event, (done: Mocha.Runnable) => titles.push({ title: done.fullTitle(), ms: done.duration ?? 0 }));
    runner.once('end', () => {
      const { passes, failures, pending } = this.stats;
      const counts = { passed: passes, failed: failures, skipped: pending };
      const result: Pick<PhaseResult, 'counts' | 'slowest'> = { counts, slowest: slowestOf(titles) };
      writeFileSync(path, JSON.stringify(result));
    });
  }
}
