import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildGeneratedGuests, PacketTable } from '../../bed/holdfast/packets.js';
import { openWire, type Wire, type WireLocation } from '../../bed/network/wire.js';
import { Processes } from '../../bed/processes/processes.js';
import type { Figure } from '../report.js';
import { holdfastEntries, SERVER } from './configs.js';

const run = promisify(execFile);
/** Entries in one command: `maxBatch` of `guest/packets/protocol.go`. */
const BATCH = 256;
const CONFIG = {
  v: 2,
  interface: 'eth0',
  server: { ipv4: SERVER.ipv4, duid: '0004000102030405060708090a0b0c0d0e0f' },
  subnets: [{ cidr: SERVER.prefix4 }, { cidr: SERVER.prefix6 }],
  peers: [],
  times: { renew: 300, rebind: 600, lease: 86_400, advertise: 1800 },
};

/** Measures on real segments. @returns no figures if there are none on this machine */
export async function onSegments(
  measure: (wire: Wire, folder: string, progress: (line: string) => void) => Promise<Figure[]>,
): Promise<Figure[]> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-'));
  const processes = new Processes(join(folder, 'logs'), join(folder, 'data'));
  const progress = (line: string) => process.stderr.write(`  ${line}\n`);
  try {
    const wire = await openWire(processes, progress);
    return wire === undefined ? [] : await measure(wire, folder, progress);
  } finally {
    await processes.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

/** Compiles holdfast-packets and the generated guests. @returns the path of the latter */
export async function buildPrograms(folder: string): Promise<string> {
  await run(process.execPath, [join(import.meta.dirname, '../../guest/packets/build.js')]);
  return buildGeneratedGuests(folder);
}

/** Adds a host whose kernel has no address. */
export async function addSilentHost(wire: Wire, name: string, segment: string): Promise<WireLocation> {
  await wire.addHost(name, segment, []);
  const disable = 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6';
  await wire.run(`host/${name}`, { command: '/bin/sh', args: ['-c', disable] });
  return `host/${name}`;
}

/** @param pattern of the whole command */
export async function pidOf(pattern: string): Promise<number> {
  const { stdout } = await run('pgrep', ['-f', pattern]);
  return Number(stdout.trim().split('\n')[0]);
}

/** Sends the table of all generated guests, and waits until it is taken. */
export async function fillTable(socket: string, count: number): Promise<void> {
  const table = await PacketTable.connect(socket);
  const options = { id: 'o', dns: ['10.80.0.53', 'fd00:80::53'], mtu: 1400 };
  table.send({ config: CONFIG }, { snapshot: 'begin' }, { options });
  const put = holdfastEntries(count);
  for (let from = 0; from < count; from += BATCH) table.send({ put: put.slice(from, from + BATCH) });
  await table.apply({ snapshot: 'end' }, { fresh: { forMs: 3_600_000 } });
}

/** Runs the generated guests of `guest/packets/guests.go`. @returns what they print */
export async function runGuests<Results>(
  wire: Wire,
  at: WireLocation,
  program: string,
  flags: readonly string[],
): Promise<Results> {
  const { stdout, stderr } = await wire.run(at, { command: program, args: flags });
  if (stdout === '') throw new Error(`the generated guests failed: ${stderr}`);
  return JSON.parse(stdout) as Results;
}
