#!/usr/bin/env node
import { systemClock } from '../kube/clock.js';
import { messageOf } from '../kube/errors.js';
import { UsageError } from '../process/read-arguments.js';
import { type CliCommand, readCommandLine } from './command-line.js';
import { listIps } from './ips.js';
import { reserve, unreserve } from './reserve.js';
import { CONCURRENCY, withClient } from './cluster-client.js';
import { askOnTerminal, writeLine } from './terminal.js';
import { uninstall } from './uninstall/uninstall.js';
import { migrateWhereabouts } from './whereabouts/migrate.js';

/** `kubectl holdfast`. Exit codes: 0 done, 1 failed or refused, 2 invalid command line. */
async function main(): Promise<number> {
  const request = readCommandLine(process.argv.slice(2));
  if (request === undefined) return 0;
  return (await runCommand(request)) ? 0 : 1;
}

async function runCommand(request: CliCommand): Promise<boolean> {
  const print = (line: string) => writeLine(process.stdout, line);
  const tell = (line: string) => writeLine(process.stderr, line);
  return withClient(request.cluster, async (client, home, server) => {
    switch (request.command) {
      case 'migrate whereabouts':
        return migrateWhereabouts(request.options, {
          client,
          clock: systemClock,
          concurrency: CONCURRENCY,
          print,
          printStatus: tell,
        });
      case 'reserve':
        print(await reserve(request.reservation, client));
        return true;
      case 'unreserve':
        print(await unreserve(request.reservation, client));
        return true;
      case 'ips':
        for (const line of await listIps(request.options, client, home)) print(line);
        return true;
      case 'uninstall':
        return uninstall(request.options, {
          client,
          server,
          clock: systemClock,
          concurrency: CONCURRENCY,
          print,
          printStatus: tell,
          ask: process.stdin.isTTY ? askOnTerminal : undefined,
        });
    }
  });
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
    const usage = error instanceof UsageError;
    const [first = '', ...more] = messageOf(error).split('\n');
    for (const line of [`kubectl holdfast: ${first}`, ...more.map((text) => `  ${text}`)]) {
      writeLine(process.stderr, line);
    }
    if (usage) writeLine(process.stderr, `See: ${error.helpCommand ?? 'kubectl holdfast --help'}`);
    process.exitCode = usage ? 2 : 1;
  },
);
