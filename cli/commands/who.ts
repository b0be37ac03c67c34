import { UsageError } from '../../process/read-arguments.js';
import { formatAddress, parseAddress } from '../../ipam/core/address.js';
import { messageOf } from '../../kube/errors.js';
import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { printOutput } from '../output.js';
import { findPastHolder } from '../who/history.js';
import { findHolders } from '../who/holders.js';

interface GivenOptions {
  readonly at?: string;
  readonly file?: string;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

export const WHO = defineCommand({
  usage: 'who <address>',
  description: 'say who has an address now, or with --at who had it, as the audit log of ipam says',
  options: [
    { flags: '--at <time>', description: 'the time that is asked for, like 2030-01-31T14:00:00Z; needs --file' },
    {
      flags: '--file <files>',
      description: 'files of the audit log, separated by commas; .gz is read too. Rotated files may be in any order',
    },
  ],
  common: { output: true },
  read: ([text = ''], { at, file }: GivenOptions, { output }) => {
    const address = readAddress(text);
    if ((at === undefined) !== (file === undefined))
      throw new UsageError('--at and --file belong together: the audit log says who had an address at a time');
    if (at === undefined || file === undefined) return { address, output };
    if (!TIME.test(at) || Number.isNaN(Date.parse(at)))
      throw new UsageError(
        `--at: ${JSON.stringify(at)} is not a time with its zone: write it like 2030-01-31T14:00:00Z`,
      );
    return { address, output, past: { at: new Date(at).toISOString(), files: file.split(',') } };
  },
  run: async ({ address, output, past }, { terminal, connect }) => {
    const found =
      past === undefined
        ? await connect(({ client }) => findHolders(address, client))
        : await findPastHolder(formatAddress(address), past.at, past.files);
    printOutput(output, found, terminal.print);
    return ExitCode.done;
  },
});

function readAddress(text: string) {
  try {
    return parseAddress(text);
  } catch (error) {
    throw new UsageError(messageOf(error), { cause: error });
  }
}
