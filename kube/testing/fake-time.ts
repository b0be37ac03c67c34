/** What systemClock uses. The rest stays real: the test runner writes its output with nextTick. */
export const FAKED: ('Date' | 'performance' | 'setTimeout' | 'clearTimeout')[] = [
  ...(['Date', 'performance', 'setTimeout', 'clearTimeout'] as const),
];
