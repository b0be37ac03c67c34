import { randomBytes } from 'node:crypto';
import { UsageError } from '../../process/read-arguments.js';
import { systemClock } from '../../kube/clock.js';
import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { builtPage } from '../ui/page-files.js';

interface GivenOptions {
  readonly port?: string;
  readonly browser: boolean;
}

/** Serves the web page. Its code is loaded only for this command. */
export const UI = defineCommand({
  usage: 'ui',
  description: 'show pools, addresses and VMs in the browser',
  options: [
    { flags: '--port <number>', description: 'port on 127.0.0.1; default: a free one' },
    { flags: '--no-browser', description: 'only print the address of the page' },
  ],
  common: { namespace: 'namespace to show if you may not read all' },
  read: (_args, { port = '0', browser }: GivenOptions, { namespace }) => {
    if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535) {
      throw new UsageError(`--port: "${port}" is not a port: write a number from 1 to 65535`);
    }
    return { port: Number(port), opensBrowser: browser, namespace };
  },
  run: ({ namespace, ...options }, { terminal, connect }) =>
    connect(async ({ client, home }) => {
      const { serveUi } = await import('../ui/serve-ui.js');
      const deps = { client, clock: systemClock, random: Math.random, randomBytes, page: builtPage() };
      const input = process.stdin.isTTY ? process.stdin : undefined;
      await serveUi(deps, { ...options, namespace: namespace ?? home }, { print: terminal.print, input });
      return ExitCode.done;
    }),
});
