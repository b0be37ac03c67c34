import { writeFileSync } from 'node:fs';
import Mocha from 'mocha';
import { type ResultOfTests, type TimedTitle, slowestOf } from './summary.js';

const { EVENT_HOOK_END, EVENT_TEST_END, EVENT_TEST_FAIL } = Mocha.Runner.constants;

/** Prints like mocha's `spec`, and at the end writes counts, slowest titles and failures as JSON to the file that the option `result` names. */
export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { result: path } = (options.reporterOptions ?? {}) as { result?: string };
    if (path === undefined) throw new TypeError('the reporter needs --reporter-option result=<file>');
    const titles: TimedTitle[] = [];
    for (const event of [EVENT_TEST_END, EVENT_HOOK_END])
      runner.on(event, (done: Mocha.Runnable) => titles.push({ title: done.fullTitle(), ms: done.duration ?? 0 }));
    const failures: string[] = [];
    // Of another process comes a plain object with the message.
    runner.on(EVENT_TEST_FAIL, (failed: Mocha.Runnable, { message }: { message: string }) => {
      const [firstLine] = message.split('\n', 1);
      failures.push(`${failed.fullTitle()}: ${firstLine}`);
    });
    runner.once('end', () => {
      const { stats } = this;
      const counts = { passed: stats.passes, failed: stats.failures, skipped: stats.pending };
      const result: ResultOfTests = { counts, slowest: slowestOf(titles), failures };
      writeFileSync(path, JSON.stringify(result));
    });
  }
}
