/** The exit codes of all commands, as their help explains them. Scripts rely on them. */
export const ExitCode = { done: 0, failed: 1, usage: 2, unhealthy: 3, unchecked: 4 } as const;

export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

export const EXIT_CODES_HELP = `Exit codes:
  0  done
  1  failed, or refused to act: the message says why
  2  invalid command line
  3  the cluster has a problem, which the command has printed
  4  nothing could be checked: you lack the rights
`;

/** The command cannot be carried out. The message says why and what to do, so the user needs no stack trace. */
export class CommandError extends Error {
  override readonly name = 'CommandError';
}
