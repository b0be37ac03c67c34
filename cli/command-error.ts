/** What was asked for cannot be done. The message says why, and what to do; there is nothing more to know of where it was thrown. */
export class CommandError extends Error {
  override readonly name = 'Refusal';
}
