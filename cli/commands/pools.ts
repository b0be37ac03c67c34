import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { findPool } from '../find-pool.js';
import { printOutput } from '../output.js';
import { showPool } from '../usage/pool.js';
import { listPools } from '../usage/pools.js';
import { readAllUsage, readClaims, readPoolUsage } from '../usage/read-usage.js';

export const POOLS = defineCommand({
  usage: 'pools',
  description: 'list the pools with their free, allocated and cooling addresses, and their problems',
  common: { output: true },
  read: (_args, _given, { output }) => ({ output }),
  run: ({ output }, { terminal, connect }) =>
    connect(async ({ client }) => {
      const usage = await readAllUsage(client);
      printOutput(output, listPools(usage, systemClock.wall(), terminal.columns !== undefined), terminal.print);
      return ExitCode.done;
    }),
});

export const POOL = defineCommand({
  usage: 'pool <pool>',
  description: 'show which addresses of a pool are free, the largest free range, who has most addresses, and who waits',
  common: { output: true },
  read: ([name = ''], _given, { output }) => {
    if (name === '') throw new UsageError('the name of the pool is empty: write a name');
    return { name, output };
  },
  run: ({ name, output }, { terminal, connect }) =>
    connect(async ({ client }) => {
      const pool = await findPool(name, client);
      const [usage, claims] = await Promise.all([readPoolUsage(client, pool), readClaims(client)]);
      const { columns } = terminal;
      printOutput(output, showPool({ pool, ...usage, claims, now: systemClock.wall(), columns }), terminal.print);
      return ExitCode.done;
    }),
});
