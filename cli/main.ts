#!/usr/bin/env node
import { messageOf } from '../kube/errors.js';
import { UsageError } from '../process/read-arguments.js';
import { withClient } from './cluster-client.js';
import { readCommandLine } from './command-line.js';
import { ExitCode } from './exit-code.js';
import { askOnTerminal, createTerminal, writeLine } from './terminal.js';

/** `kubectl holdfast` */
async function main(): Promise<ExitCode> {
  const parsed = readCommandLine(process.argv.slice(2));
  if (parsed === undefined) return ExitCode.done;
  const ask = process.stdin.isTTY ? askOnTerminal : undefined;
  const terminal = createTerminal(process.stdout, process.stderr, ask);
  try {
    return await parsed.run({ terminal, connect: (run) => withClient(parsed.cluster, run) });
  } finally {
    terminal.showProgress('');
  }
}

// the reader of a pipe, such as head, may close it early: the command continues and keeps its exit code
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

main().then(
  (exitCode) => {
    process.exitCode = exitCode;
  },
  (error: unknown) => {
    const isUsage = error instanceof UsageError;
    const [first = '', ...more] = messageOf(error).split('\n');
    for (const line of [`kubectl holdfast: ${first}`, ...more.map((text) => `  ${text}`)]) {
      writeLine(process.stderr, line);
    }
    if (isUsage) writeLine(process.stderr, `See: ${error.helpCommand ?? 'kubectl holdfast --help'}`);
    process.exitCode = isUsage ? ExitCode.usage : ExitCode.failed;
  },
);
