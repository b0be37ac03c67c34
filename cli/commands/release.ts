import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { defineCommand, nonEmptyName } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { release } from '../release/release.js';

export const RELEASE = defineCommand({
  usage: 'release <address-or-claim>',
  description: 'release an address whose owner is gone, after a check that nobody uses it; it then cools down',
  options: [
    { flags: '--pool <pool>', description: 'pool of the address, if several pools lease it' },
    { flags: '--dry-run', description: 'check everything, and write nothing' },
  ],
  common: { namespace: 'namespace of the claim' },
  read: ([subject = ''], given: { pool?: string; dryRun?: true }, { namespace }) => {
    if (subject === '') throw new UsageError('the address is empty: write an address, or the name of a claim');
    const pool = nonEmptyName(given.pool, '--pool');
    return { subject, namespace, dryRun: given.dryRun === true, ...(pool !== undefined && { pool }) };
  },
  run: ({ namespace, ...request }, { terminal, connect }) =>
    connect(async ({ client, home }) => {
      const lines = await release({ ...request, namespace: namespace ?? home }, { client, clock: systemClock });
      for (const line of lines) terminal.print(line);
      return ExitCode.done;
    }),
});
