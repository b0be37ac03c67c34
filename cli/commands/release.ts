import { describeValue } from '../../api/json.js';
import { systemClock } from '../../kube/clock.js';
import { UsageError } from '../../process/read-arguments.js';
import { defineCommand, nonEmptyName } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { release } from '../release/release.js';

const USER = /^(pod|vmi)\/[^/]+\/[^/]+$/;

export const RELEASE = defineCommand({
  usage: 'release <address-or-claim>',
  description: 'release an address whose owner is gone, after a check that nobody uses it; it then cools down',
  options: [
    { flags: '--pool <pool>', description: 'pool of the address, if several pools lease it' },
    {
      flags: '--ignore <user>',
      description:
        'pod/NAMESPACE/NAME or vmi/NAMESPACE/NAME whose report is wrong or missing: it does not use the address; may be given several times',
      isList: true,
    },
    { flags: '--dry-run', description: 'check everything, and write nothing' },
  ],
  common: { namespace: 'namespace of the claim' },
  read: ([subject = ''], given: { pool?: string; ignore?: readonly string[]; dryRun?: true }, { namespace }) => {
    if (subject === '') throw new UsageError('the address is empty: write an address, or the name of a claim');
    const pool = nonEmptyName(given.pool, '--pool');
    const ignored = new Set(given.ignore);
    for (const user of ignored) {
      if (!USER.test(user))
        throw new UsageError(`--ignore: ${describeValue(user)} is no pod/NAMESPACE/NAME or vmi/NAMESPACE/NAME`);
    }
    return { subject, namespace, ignored, dryRun: given.dryRun === true, ...(pool !== undefined && { pool }) };
  },
  run: ({ namespace, ...request }, { terminal, connect }) =>
    connect(async ({ client, home }) => {
      const lines = await release({ ...request, namespace: namespace ?? home }, { client, clock: systemClock });
      for (const line of lines) terminal.print(line);
      return ExitCode.done;
    }),
});
