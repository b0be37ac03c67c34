import { type Bed, startBed } from '../bed.js';
import type { Progress } from '../build/binaries.js';
import { argsWithoutIgnoreUnknown } from '../network/multus.js';

let suites = 0;
let running: Promise<Bed> | undefined;

/**
 * A bed without Holdfast for the suites of this process that need one, one after the other. Each removes what it created. Call it in `describe`,
 * after the hooks that still need the bed.
 * @returns starts the bed, or returns the one of an earlier suite. It stops after the last suite
 */
export function useBareBed(): (progress?: Progress) => Promise<Bed> {
  suites += 1;
  after('stop the bed without Holdfast', async () => {
    suites -= 1;
    if (suites === 0) await (await running?.catch(() => undefined))?.stop();
  });
  return (progress) => (running ??= startBed({ argsOf: argsWithoutIgnoreUnknown, ...(progress && { progress }) }));
}
