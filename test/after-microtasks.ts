/** Calls a function after so many microtasks: some before, and some after those that end an asynchronous function. */
export async function afterMicrotasks(count: number, run: () => void): Promise<void> {
  for (let passed = 0; passed < count; passed++) await Promise.resolve();
  run();
}
