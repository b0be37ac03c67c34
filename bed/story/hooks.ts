import { type Environment, startEnvironment } from '../environment.js';

let started: Environment | undefined;

/** The cluster that the suites share. */
export function environment(): Environment {
  if (started === undefined) throw new Error('the environment exists only while tests run');
  return started;
}

/** mocha calls these once, around all suites. */
export async function mochaGlobalSetup(): Promise<void> {
  const isBuilt = process.env.BED_IS_BUILT !== undefined;
  started = await startEnvironment((line) => process.stdout.write(`  ${line}\n`), { isBuilt });
}

export async function mochaGlobalTeardown(): Promise<void> {
  await started?.stop();
}
