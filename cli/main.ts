#!/usr/bin/env node
import { messageOf } from '../kube/errors.js';
import { UsageError } from '../process/read-arguments.js';
import { withClient } from './cluster-client.js';
import { buildProgram, readCliCommandLine } from './command-line.js';
import { COMPLETION_TIMEOUT_MS, answerCompletion } from './completion.js';
import { ExitCode } from './exit-code.js';
import { askOnTerminal, createTerminal, writeLine } from './terminal.js';

/** `kubectl holdfast` */
async function main(args: readonly string[]): Promise<ExitCode> {
  const parsed = readCliCommandLine(args);
  if (parsed === undefined) return ExitCode.done;
  const ask = process.stdin.isTTY ? askOnTerminal : undefined;
  const terminal = createTerminal(process.stdout, process.stderr, ask);
  try {
    return await parsed.run({ terminal, connect: (run) => withClient(parsed.cluster, run) });
  } finally {
    terminal.showProgress('');
  }
}

/** A shell asks for completions. It gets no errors, and no answer that takes long. */
async function completeWords(words: readonly string[]): Promise<never> {
  const signal = AbortSignal.timeout(COMPLETION_TIMEOUT_MS);
  const program = buildProgram(() => undefined);
  const text = await answerCompletion(program, words, withClient, signal).catch(() => '');
  // connections may still be open
  return new Promise(() => process.stdout.write(text, () => process.exit(ExitCode.done)));
}

// the reader of a pipe, such as head, may close it early: the command continues and keeps its exit code
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

const [first = '', ...rest] = process.argv.slice(2);
// hidden: its name is cobra's, which kubectl's scripts for plugins use
const ended = first === '__complete' ? completeWords(rest) : main(process.argv.slice(2));
ended.then(
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
