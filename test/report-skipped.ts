/**
 * Says why tests are skipped.
 * @throws {Error} where `CI` is set, because nobody would notice that they never run
 */
export function reportSkipped(message: string): void {
  if (process.env.CI) throw new Error(message);
  console.log(`    ${message}`);
}
