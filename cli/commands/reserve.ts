import { UsageError } from '../../process/read-arguments.js';
import { CommandError } from '../command-error.js';
import { defineCommand } from '../command.js';
import { ExitCode } from '../exit-code.js';
import { type Reservation, checkReservation, reserve, unreserve } from '../reserve.js';

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
  try {
    checkReservation(reservation);
    return reservation;
  } catch (error) {
    throw error instanceof CommandError ? new UsageError(error.message, { cause: error }) : error;
  }
}
