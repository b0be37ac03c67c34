import { systemClock } from '../../kube/clock.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { UsageError } from '../../process/read-arguments.js';
import { describeValue } from '../../api/json.js';
import { isNetworkName } from '../../api/networks/network-attachment.js';
import { defineCommand, nonEmptyName } from '../command.js';
import { CommandError, ExitCode } from '../exit-code.js';
import { findPool } from '../find-pool.js';
import { printOutput } from '../output.js';
import { readListAs, valueOr } from '../reader.js';
import { showPool } from '../usage/pool.js';
import { listPools, readAllUsage, readUsage } from '../usage/pools.js';
import { waitingClaims } from '../usage/summary.js';
import { listIps } from '../ips.js';
import { type Reservation, checkReservation, reserve, unreserve } from '../reserve.js';
import { checkSubject, releaseByHand } from '../release/release.js';

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
    requirePoolName(name, 'the pool');
    return { name, output };
  },
  run: ({ name, output }, { terminal, connect }) =>
    connect(async ({ client }) => {
      const pool = await findPool(name, client);
      const [usage, read] = await Promise.all([
        readUsage(client, pool),
        readListAs(client, IPAM_CLAIMS, (claim) => waitingClaims(pool, [claim])),
      ]);
      const claims = valueOr(read, { forbidden: undefined });
      const { columns } = terminal;
      printOutput(output, showPool({ pool, ...usage, claims, now: systemClock.wall(), columns }), terminal.print);
      return ExitCode.done;
    }),
});

export const IPS = defineCommand({
  usage: 'ips',
  description: 'list the addresses of VMs, and of pods without claims',
  common: { namespace: 'namespace of the VMs and pods', allNamespaces: true, output: true },
  read: (_args, _given, common) => common,
  run: ({ output, ...options }, { terminal, connect }) =>
    connect(async ({ client, home }) => {
      printOutput(output, await listIps(options, client, home), terminal.print);
      return ExitCode.done;
    }),
});

export const RESERVE = defineCommand({
  usage: 'reserve <pool> <address>',
  description: 'reserve an address for a MAC address, or for no workload at all',
  options: [
    {
      flags: '--mac <address>',
      description:
        'MAC address of the interface that gets the address, like 02:00:00:00:00:01; default: the address is never allocated',
    },
  ],
  read: ([pool = '', address = ''], { mac }: { mac?: string }) =>
    checkedReservation({ pool, address, ...(mac !== undefined && { mac }) }),
  run: (reservation, { terminal, connect }) =>
    connect(async ({ client }) => {
      terminal.print(await reserve(reservation, client));
      return ExitCode.done;
    }),
});

export const UNRESERVE = defineCommand({
  usage: 'unreserve <pool> <address>',
  description: 'remove the reservation of an address',
  read: ([pool = '', address = '']) => checkedReservation({ pool, address }),
  run: (reservation, { terminal, connect }) =>
    connect(async ({ client }) => {
      terminal.print(await unreserve(reservation, client));
      return ExitCode.done;
    }),
});

/** Checks the arguments before the command connects to a cluster. */
function checkedReservation(reservation: Reservation): Reservation {
  requirePoolName(reservation.pool, 'the pool');
  try {
    checkReservation(reservation);
    return reservation;
  } catch (error) {
    throw error instanceof CommandError ? new UsageError(error.message, { cause: error }) : error;
  }
}

/** For the name of a network, which may have capitals, pools are suggested. @throws {UsageError} */
function requirePoolName(name: string, what: string): void {
  if (isNetworkName(name)) return;
  throw new UsageError(`${what}: ${describeValue(name)} is not a name: run kubectl holdfast pools to list all pools`);
}

const USER = /^(?:(?:pod|vmi)\/[^/]+|node)\/[^/]+$/;

export const RELEASE = defineCommand({
  usage: 'release <address-or-claim>',
  description: 'release an address whose owner is gone, after a check that nobody uses it; it then cools down',
  options: [
    { flags: '--pool <pool>', description: 'pool of the address, if several pools lease it' },
    {
      flags: '--ignore <user>',
      description:
        'pod/NAMESPACE/NAME, vmi/NAMESPACE/NAME or node/NAME that does not use the address, although it may look so; may be given several times',
      isList: true,
    },
    { flags: '--dry-run', description: 'check everything, and write nothing' },
  ],
  common: { namespace: 'namespace of the claim' },
  read: ([subject = ''], given: { pool?: string; ignore?: readonly string[]; dryRun?: true }, { namespace }) => {
    if (subject === '') throw new UsageError('the address is empty: write an address, or the name of a claim');
    checkSubject(subject);
    const pool = nonEmptyName(given.pool, '--pool');
    if (pool !== undefined) requirePoolName(pool, '--pool');
    const ignored = new Set(given.ignore);
    for (const user of ignored) {
      if (!USER.test(user))
        throw new UsageError(
          `--ignore: ${describeValue(user)} is no pod/NAMESPACE/NAME, vmi/NAMESPACE/NAME or node/NAME`,
        );
    }
    return { subject, namespace, ignored, dryRun: given.dryRun === true, ...(pool !== undefined && { pool }) };
  },
  run: ({ namespace, ...request }, { terminal, connect }) =>
    connect(async ({ client, home }) => {
      const { print } = terminal;
      await releaseByHand({ ...request, namespace: namespace ?? home }, { client, print });
      return ExitCode.done;
    }),
});
