import { UsageError } from '../../process/read-arguments.js';
import { parseLeaseMac, parseMac } from '../../api/mac-address.js';
import { type Address, formatAddress, parseAddress, requireUnmapped } from '../../addressing/address/address.js';
import { systemClock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import { type CommandContext, defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { type Output, printOutput } from '../output.js';
import { findPastHolder } from '../who/history.js';
import { findHolders, findHoldersOfMac } from '../who/holders.js';
import { findPodLogs, linesOfFile } from '../who/pod-logs.js';

interface GivenOptions {
  readonly at?: string;
  readonly file?: readonly string[];
  readonly logs?: boolean;
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

export const WHO = defineCommand({
  usage: 'who <address>',
  description:
    'say who has an IP or MAC address now, or with --at who had an IP address, as the audit log of ipam says',
  options: [
    {
      flags: '--at <time>',
      description: 'the time that is asked for, like 2030-01-31T14:00:00Z; needs --file or --logs',
    },
    {
      flags: '--file <path>',
      description:
        'file of the audit log, .gz too; may be given several times, for rotated files and all replicas in any order',
      isList: true,
    },
    {
      flags: '--logs',
      description: "read the logs of ipam's pods, with --audit-log=- of ipam; with --file, both are searched together",
    },
  ],
  common: { output: true },
  read: ([text = ''], { at, file = [], logs = false }: GivenOptions, { output }) => {
    const wanted = readWanted(text);
    if ((at === undefined) !== (file.length === 0 && !logs))
      throw new UsageError(
        '--at belongs together with --file or --logs: the audit log says who had an address at a time',
      );
    if (at === undefined) return { wanted, output };
    if (!isTime(at))
      throw new UsageError(
        `--at: ${JSON.stringify(at)} is not a time with its zone: write it like 2030-01-31T14:00:00Z`,
      );
    if (typeof wanted === 'string')
      throw new UsageError(`--at: ${wanted} is a MAC address; the audit log is searched by IP address`);
    return { wanted, output, past: { at: new Date(at).toISOString(), files: file, logs } };
  },
  run: async ({ wanted, output, past }, context) => {
    const now = systemClock.wall();
    const found = await (past !== undefined && typeof wanted !== 'string'
      ? findPast(formatAddress(wanted), past, context)
      : context.connect(({ client }) =>
          typeof wanted === 'string' ? findHoldersOfMac(wanted, client, now) : findHolders(wanted, client, now),
        ));
    printOutput(output, found, context.terminal.print);
    return ExitCode.done;
  },
});

/** True if the day exists, too: JavaScript takes 30 February for 2 March. */
function isTime(text: string): boolean {
  const day = new Date(text.slice(0, 10)).getUTCDate();
  return TIME.test(text) && !Number.isNaN(Date.parse(text)) && day === Number(text.slice(8, 10));
}

function findPast(
  address: string,
  { at, files, logs }: { at: string; files: readonly string[]; logs: boolean },
  { terminal: { showProgress }, connect }: CommandContext,
): Promise<Output> {
  const ofFiles = files.map(linesOfFile);
  if (!logs) return findPastHolder(address, at, { lines: ofFiles, unread: new Set() });
  return connect(async (cluster) => {
    const { lines, unread } = await findPodLogs(cluster, showProgress);
    return findPastHolder(address, at, { lines: [...ofFiles, ...lines], unread });
  });
}

/** @returns an IP address, or the text of a MAC address */
function readWanted(text: string): Address | string {
  const mac = parseMac(text) ?? parseLeaseMac(text);
  try {
    return requireUnmapped(parseAddress(text));
  } catch (error) {
    if (mac !== undefined) return mac;
    throw new UsageError(`${messageOf(error)}; a MAC address looks like 02:00:00:00:00:01`, { cause: error });
  }
}
