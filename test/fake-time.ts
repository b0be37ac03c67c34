/** What systemClock uses. The rest stays real: the test runner writes its output with nextTick. */
export const FAKED: ('Date' | 'setTimeout' | 'clearTimeout')[] = ['Date', 'setTimeout', 'clearTimeout'];
