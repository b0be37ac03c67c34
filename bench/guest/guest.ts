import { join } from 'node:path';
import type { Wire } from '../../bed/network/wire.js';
import { startPackets } from '../../bed/holdfast/packets.js';
import { addSilentHost, buildPrograms, fillTable, onSegments, pidOf, runGuests } from './segment.js';
import type { Figure } from '../report.js';
import { usageOf } from '../usage.js';

const SEGMENT = 'bench0';
const GUESTS = 2000;
const RENEWING = 50;
const RENEW_SECONDS = 10;
const GARBAGE_PER_SECOND = 10_000;
/** What the generated guests print: `guest/packets/guests.go`. */
interface Results {
  readonly booted: number;
  readonly bootMs: number;
  readonly resent: number;
  readonly renewals: number;
  readonly answered: number;
  readonly worstMs: number;
  readonly garbage: number;
  readonly sendErrors: number;
}

/** Measures holdfast-packets with generated guests on a real segment; skipped without real networks. */
export async function benchGuest(): Promise<Figure[]> {
  return onSegments(measure);
}

async function measure(wire: Wire, folder: string, progress: (line: string) => void): Promise<Figure[]> {
  const guests = await buildPrograms(folder);
  const socket = join(folder, 'packets.sock');
  const [responder, crowd] = [
    await addSilentHost(wire, 'responder', SEGMENT),
    await addSilentHost(wire, 'guests', SEGMENT),
  ];
  await startPackets(wire, responder, socket);
  const pid = await pidOf(`packets-linux.*--socket=${socket}`);
  await fillTable(socket, GUESTS);
  const run = (flags: readonly string[]) => runGuests<Results>(wire, crowd, guests, [`-count=${GUESTS}`, ...flags]);
  const first = await run(['-count=1']);
  const idle = await usageOf(pid);
  const boot = await run([]);
  const booted = await usageOf(pid);
  progress(JSON.stringify(boot));
  const flags = [`-renewing=${RENEWING}`, `-renew=${RENEW_SECONDS}s`, `-garbage=${GARBAGE_PER_SECOND}`];
  const flood = await run(flags);
  const flooded = await usageOf(pid);
  progress(JSON.stringify(flood));
  // Two messages and two answers each.
  const exchanges = 2 * boot.booted;
  const cpuOfFlood = flooded.cpuSeconds - booted.cpuSeconds - (booted.cpuSeconds - idle.cpuSeconds);
  return [
    {
      name: 'one guest has its address, after a probe',
      value: first.bootMs / 1000,
      unit: 's',
      target: { atMost: 0.32 },
    },
    { name: 'guests that boot at once and get an address', value: boot.booted, unit: '', target: { atLeast: GUESTS } },
    { name: 'until the last of them has it', value: boot.bootMs / 1000, unit: 's', target: { atMost: 1 } },
    { name: 'messages that guests sent again', value: boot.resent, unit: '', target: { atMost: 0 } },
    { name: 'CPU per exchange', value: ((booted.cpuSeconds - idle.cpuSeconds) / exchanges) * 1e6, unit: 'µs' },
    { name: 'memory (RSS) with 2,000 guests', value: flooded.rssMiB, unit: 'MiB' },
    { name: 'frames of garbage in a second', value: flood.garbage / RENEW_SECONDS, unit: '' },
    {
      name: 'renewals answered meanwhile',
      value: (100 * flood.answered) / flood.renewals,
      unit: '%',
      target: { atLeast: 100 },
    },
    { name: 'slowest of them', value: flood.worstMs, unit: 'ms' },
    { name: 'CPU for the garbage', value: cpuOfFlood / RENEW_SECONDS, unit: 'cores' },
  ];
}
