import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PacketTable, startPackets } from '../../bed/holdfast/packets.js';
import { DhcpServers } from '../../bed/network/dhcp-servers.js';
import { type RunningCommand, type Wire, openWire } from '../../bed/network/wire.js';
import { capture, Processes } from '../../bed/processes/processes.js';
import { ROOT } from '../../test/source-files.js';
import { DNSMASQ_ARGS, KEA4, KEA6 } from './dhcp-servers.js';

/**
 * Runs the cases of `guest/packets/testdata/conformance.jsonl` against holdfast-packets, Kea and dnsmasq on segments of their own. It
 * fails if holdfast-packets does not answer as expected, or if no other server shares an expectation and no difference is named.
 */
const PACKETS = join(ROOT, 'guest/packets');
const GUEST_MAC = '02:00:00:00:00:0a';
const FAMILIES = { dhcp4: 'DHCPv4', dhcp6: 'DHCPv6', ndp: 'NDP' };

interface Case {
  readonly protocol: keyof typeof FAMILIES;
  readonly name: string;
  readonly rfc: string;
  readonly difference?: string;
}

/** By the title of a case: whether the server answered as expected. */
type Results = ReadonlyMap<string, boolean>;

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-dhcp-'));
  const processes = new Processes(join(folder, 'logs'), join(folder, 'data'));
  try {
    const wire = await openWire(processes, (line) => process.stderr.write(`  ${line}\n`));
    if (wire === undefined) throw new Error('the conformance of DHCP needs Linux and root');
    process.exitCode = await compare(wire, folder);
  } finally {
    await processes.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function compare(wire: Wire, folder: string): Promise<number> {
  const servers = await DhcpServers.find();
  if (typeof servers === 'string') throw new Error(servers);
  const suite = join(folder, 'conformance.test');
  await capture('go', ['test', '-c', '-o', suite, '.'], { cwd: PACKETS, env: { ...process.env, CGO_ENABLED: '0' } });
  const holdfast = await resultsOf(wire, suite, 'holdfast', () => startHoldfast(wire, folder));
  const kea = await resultsOf(wire, suite, 'kea', () => startKea(wire, servers, folder));
  const dnsmasq = await resultsOf(wire, suite, 'dnsmasq', () => startDnsmasq(wire, servers));
  return report(await allCases(), { holdfast, kea, dnsmasq });
}

function report(cases: ReadonlyMap<string, Case>, results: Record<'holdfast' | 'kea' | 'dnsmasq', Results>): number {
  const { holdfast, kea, dnsmasq } = results;
  let failures = 0;
  for (const [title, { rfc, difference }] of cases) {
    const answers = [holdfast, kea, dnsmasq].map((each) => each.get(title));
    const isShared = answers.slice(1).includes(true) || difference !== undefined;
    const isWrong = !answers[0] || !isShared;
    if (isWrong) failures += 1;
    const columns = answers.map((isMet) => (isMet === undefined ? '-' : isMet ? 'yes' : 'no').padEnd(9)).join('');
    console.log(`${columns}${title} (RFC ${rfc})${difference === undefined ? '' : `: ${difference}`}`);
    if (!answers[0]) console.log(`         ^ holdfast-packets does not answer as expected`);
    else if (!isShared) console.log(`         ^ no other server does this: correct the case, or name the difference`);
  }
  console.log(`${cases.size - failures} passed, ${failures} failed; columns: holdfast-packets, Kea, dnsmasq`);
  return failures === 0 ? 0 : 1;
}

async function allCases(): Promise<Map<string, Case>> {
  const text = await readFile(join(PACKETS, 'testdata/conformance.jsonl'), 'utf8');
  const cases = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Case);
  return new Map(cases.map((each) => [`${FAMILIES[each.protocol]}: ${each.name}`, each]));
}

/** Runs all cases on the segment of a server. */
async function resultsOf(
  wire: Wire,
  suite: string,
  server: string,
  start: () => Promise<RunningCommand[]>,
): Promise<Results> {
  const programs = await start();
  const cases = server === 'kea' ? 'DHCP' : ''; // it sends no router advertisements
  const client = `client-${server}`;
  await wire.addHost(client, segmentOf(server), []);
  await wire.setMac(`host/${client}`, 'eth0', GUEST_MAC);
  // Servers ask by ARP and neighbour discovery who has them.
  for (const address of ['10.1.0.10/24', 'fe80::ff:fe00:a/64'])
    await wire.addAddress(`host/${client}`, 'eth0', address, true);
  const { stdout, stderr } = await wire.run(`host/${client}`, {
    command: '/bin/sh',
    args: ['-c', `cd ${PACKETS} && exec ${suite} -test.run 'TestConformance/${cases}' -test.v`],
    env: { PATH: process.env.PATH ?? '', CONFORMANCE_INTERFACE: 'eth0' },
  });
  const found = new Map<string, boolean>();
  for (const [, verdict, family = '', name = ''] of stdout.matchAll(/--- (PASS|FAIL): TestConformance\/(\w+)\/(\S+)/g))
    found.set(`${family}: ${name.replaceAll('_', ' ')}`, verdict === 'PASS');
  if (found.size === 0) {
    const logs = programs.map(({ output }) => output.stdout + output.stderr).join('');
    throw new Error(`no case ran against ${server}: ${stdout}${stderr}${logs}`);
  }
  if (process.env.VERBOSE) process.stderr.write(stdout);
  for (const program of programs) await program.stop();
  return found;
}

function segmentOf(server: string): string {
  return `br-${server}`;
}

async function startHoldfast(wire: Wire, folder: string): Promise<RunningCommand[]> {
  await capture(process.execPath, [join(PACKETS, 'build.js')]);
  await wire.addHost('holdfast', segmentOf('holdfast'), []);
  const disable = 'echo 1 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6';
  await wire.run('host/holdfast', { command: '/bin/sh', args: ['-c', disable] });
  const socket = join(folder, 'packets.sock');
  const running = await startPackets(wire, 'host/holdfast', socket);
  const table = await PacketTable.connect(socket);
  const session = (await readFile(join(PACKETS, 'testdata/session.jsonl'), 'utf8')).replaceAll('guest0', 'eth0');
  const commands = session.split('\n').filter((line) => /^\{"(config|options|put|snapshot)"/.test(line));
  // up to the end of the snapshot, as in the Go tests
  const end = commands.findIndex((line) => line.includes('"end"'));
  const parsed = commands.slice(0, end + 1).map((line) => JSON.parse(line) as object);
  await table.apply(...parsed, { fresh: { forMs: 3_600_000 } });
  return [running];
}

async function startKea(wire: Wire, servers: DhcpServers, folder: string): Promise<RunningCommand[]> {
  await wire.addHost('kea', segmentOf('kea'), ['10.1.0.2/24', 'fd00:1::2/64']);
  return [
    await servers.startKea(wire, 'host/kea', { program: 'kea-dhcp4', config: KEA4, folder }),
    await servers.startKea(wire, 'host/kea', { program: 'kea-dhcp6', config: KEA6, folder }),
  ];
}

async function startDnsmasq(wire: Wire, servers: DhcpServers): Promise<RunningCommand[]> {
  await wire.addHost('dnsmasq', segmentOf('dnsmasq'), ['10.1.0.2/24', 'fd00:1::2/64']);
  return [await servers.startDnsmasq(wire, 'host/dnsmasq', DNSMASQ_ARGS)];
}

await main();
