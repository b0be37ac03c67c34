/** The command cannot be carried out. The message says why and what to do, so the user needs no stack trace. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}
