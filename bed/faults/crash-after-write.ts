import { type ProxyOptions, withProxy } from './api-proxy.js';

export interface CrashOptions extends Omit<ProxyOptions, 'onWrite'> {
  /** Selects the writes after which the process is killed. */
  readonly counts: (method: string, path: string) => boolean;
}

/**
 * Repeats a test. In its n-th run the process is killed right after its n-th write, before it gets the answer, and started again
 * at once. Ends after the first run that has fewer writes.
 * @param run must wait in the end until the process has nothing left to write
 * @returns the writes after which the process was killed: method and path
 */
export async function crashAfterEachWrite(
  { counts, ...options }: CrashOptions,
  run: (nth: number) => Promise<void>,
): Promise<string[]> {
  const crashes: string[] = [];
  // nth is 0 before the first run, so that writes at the start of the process are not counted
  const current = { nth: 0, writes: 0, restarted: undefined as Promise<void> | undefined };
  let restart = (): Promise<void> => Promise.resolve();
  const onWrite = (what: string) => {
    const [method = '', path = ''] = what.split(' ');
    if (!counts(method, path) || ++current.writes !== current.nth) return undefined;
    crashes.push(what);
    current.restarted = restart();
    return current.restarted;
  };
  await withProxy({ ...options, onWrite }, async ({ start }) => {
    restart = () => options.process.kill().then(start);
    for (;;) {
      Object.assign(current, { nth: current.nth + 1, writes: 0, restarted: undefined });
      await run(current.nth);
      if (current.restarted === undefined) return;
      await current.restarted;
    }
  });
  return crashes;
}
