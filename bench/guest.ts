import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openWire, type Wire, type WireLocation } from '../bed/network/wire.js';
import { Processes } from '../bed/processes/processes.js';
import { buildGeneratedGuests, PacketTable, startPackets } from '../bed/holdfast/packets.js';
import type { Figure } from './report.js';
import { usageOf } from './usage.js';

const run = promisify(execFile);
const SOURCES = join(import.meta.dirname, '..', 'guest', 'packets');

const SEGMENT = 'bench0';
const GUESTS = 2000;
/** Entries in one command: `maxBatch` of `guest/packets/protocol.go`. */
const BATCH = 256;
const RENEWING = 50;
const RENEW_SECONDS = 10;
const GARBAGE_PER_SECOND = 10_000;
const CONFIG = {
  v: 2,
  interface: 'eth0',
  server: { ipv4: '10.80.0.1', duid: '0004000102030405060708090a0b0c0d0e0f' },
  subnets: [{ cidr: '10.80.0.0/16' }],
  peers: [],
  times: { renew: 300, rebind: 600, lease: 86_400, advertise: 300 },
};

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
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  const processes = new Processes(join(folder, 'logs'), join(folder, 'data'));
  const progress = (line: string) => process.stderr.write(`  ${line}\n`);
  try {
    const wire = await openWire(processes, progress);
    if (wire === undefined) return [];
    return await measure(wire, folder, progress);
  } finally {
    await processes.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(wire: Wire, folder: string, progress: (line: string) => void): Promise<Figure[]> {
  const { guests, socket } = await build(folder);
  const [responder, crowd] = [await addHost(wire, 'responder'), await addHost(wire, 'guests')];
  await startPackets(wire, responder, socket);
  const { stdout } = await run('pgrep', ['-f', `packets-linux.*--socket=${socket}`]);
  const pid = Number(stdout.trim().split('\n')[0]);
  await fill(socket);
  const first = await runGuests(wire, crowd, guests, ['-count=1']);
  const idle = await usageOf(pid);
  const boot = await runGuests(wire, crowd, guests, []);
  const booted = await usageOf(pid);
  progress(JSON.stringify(boot));
  const flags = [`-renewing=${RENEWING}`, `-renew=${RENEW_SECONDS}s`, `-garbage=${GARBAGE_PER_SECOND}`];
  const flood = await runGuests(wire, crowd, guests, flags);
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

async function build(folder: string): Promise<{ guests: string; socket: string }> {
  await run(process.execPath, [join(SOURCES, 'build.js')]);
  const guests = await buildGeneratedGuests(folder);
  return { guests, socket: join(folder, 'packets.sock') };
}

/** Adds a host whose kernel has no address. */
async function addHost(wire: Wire, name: string): Promise<WireLocation> {
  await wire.addHost(name, SEGMENT, []);
  const disable = 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6';
  await wire.run(`host/${name}`, { command: '/bin/sh', args: ['-c', disable] });
  return `host/${name}`;
}

/** Sends the table of all generated guests. */
async function fill(socket: string): Promise<void> {
  const table = await PacketTable.connect(socket);
  table.send({ config: CONFIG }, { snapshot: 'begin' }, { options: { id: 'o', dns: ['10.80.0.53'], mtu: 1400 } });
  const hex = (byte: number) => byte.toString(16).padStart(2, '0');
  const put = Array.from({ length: GUESTS }, (_, index) => ({
    mac: `02:fe:00:00:${hex(index >> 8)}:${hex(index & 0xff)}`,
    ipv4: { address: `10.80.${String(1 + (index >> 8))}.${String(index & 0xff)}`, prefix: 16, router: '10.80.0.1' },
    options: 'o',
  }));
  for (let from = 0; from < GUESTS; from += BATCH) table.send({ put: put.slice(from, from + BATCH) });
  table.send({ snapshot: 'end' }, { fresh: { forMs: 600_000 } });
}

async function runGuests(wire: Wire, at: WireLocation, program: string, flags: readonly string[]): Promise<Results> {
  const args = [`-count=${GUESTS}`, ...flags];
  const { stdout, stderr } = await wire.run(at, { command: program, args });
  if (stdout === '') throw new Error(`the generated guests failed: ${stderr}`);
  return JSON.parse(stdout) as Results;
}
