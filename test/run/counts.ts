/** The number of tests by result. */
export interface TestCounts {
  readonly passed: number;
  readonly failed: number;
  /** Tests that this environment cannot run. */
  readonly skipped: number;
}

export const NO_TESTS: TestCounts = { passed: 0, failed: 0, skipped: 0 };

export function addCounts(a: TestCounts, b: TestCounts): TestCounts {
  return { passed: a.passed + b.passed, failed: a.failed + b.failed, skipped: a.skipped + b.skipped };
}

/** The closing line of a run, which scripts read: `N passed, N failed`. */
export function closingLine({ passed, failed, skipped }: TestCounts): string {
  return `${passed} passed, ${failed} failed${skipped === 0 ? '' : `, ${skipped} skipped`}`;
}

/** A run without a passed test is no success. */
export function succeeded({ passed, failed }: TestCounts): boolean {
  return failed === 0 && passed > 0;
}
