import { join } from 'node:path';
import { ensureModule } from '../bed/build/binaries.js';
import type { WireLocation } from '../bed/network/wire.js';
import { until } from '../bed/processes/wait.js';
import { percentilesOf } from './load.js';
import type { PluginRun } from './cni/plugin-caller.js';
import { onSegments } from './dhcp/segment.js';
import { ADDRESSES, type PortCall, GuardedPorts, SEGMENT } from './guard/ports.js';
import type { Figure } from './report.js';

const FLOOD = join(import.meta.dirname, 'guard', 'flood');
const PORTS = 1000;
const SAMPLE = 100;
const ROUNDS = 10;
const SINK = { name: 'guard-sink', ipv4: '10.81.0.9', ipv6: 'fd00:81::9' };
const MEASURES = { packets: 'receive', bytes: 'accept' } as const;

/** By name of what was measured: those of all rounds. */
type Rates = Map<string, number[]>;

/** Measures what a guard costs: at ADD and DEL, among many ports, and each packet; skipped without real networks. */
export function benchGuard(): Promise<Figure[]> {
  return onSegments(async (wire, folder, progress) => {
    const ports = await GuardedPorts.open(wire, folder, progress);
    try {
      const traffic = await measureTraffic(ports, join(await ensureModule(FLOOD, progress), 'flood'));
      progress('traffic done');
      return [...(await measureCalls(ports)), ...(await measureManyPorts(ports)), ...traffic];
    } finally {
      ports.close();
    }
  });
}

/** Alternates, so that other load on the machine affects both. */
async function measureCalls(ports: GuardedPorts): Promise<Figure[]> {
  await ports.add(['one']);
  const calls = Array.from({ length: SAMPLE }, () =>
    [false, true].flatMap((isGuarded) => (['ADD', 'DEL'] as const).map((verb) => ({ verb, port: 'one', isGuarded }))),
  ).flat();
  const runs = await ports.call(calls);
  const runsOf = (verb: PortCall['verb'], isGuarded: boolean) =>
    runs.filter((_, at) => calls[at]!.verb === verb && calls[at]!.isGuarded === isGuarded);
  return (['ADD', 'DEL'] as const).flatMap((verb) => {
    const [without, withGuard] = [runsOf(verb, false), runsOf(verb, true)];
    const target = verb === 'ADD' && { target: { atMost: 3 } };
    return [
      { name: `guard: ${verb} without, p50`, value: median(without), unit: 'ms' },
      { name: `guard: ${verb} with, p50 more`, value: median(withGuard) - median(without), unit: 'ms', ...target },
      { name: `guard: ${verb} without, CPU`, value: medianCpu(without), unit: 'ms' },
      {
        name: `guard: ${verb} with, CPU more`,
        value: medianCpu(withGuard) - medianCpu(without),
        unit: 'ms',
        ...target,
      },
    ];
  });
}

async function measureManyPorts(ports: GuardedPorts): Promise<Figure[]> {
  const names = Array.from({ length: PORTS }, (_, number) => number.toString(36).padStart(4, '0'));
  await ports.add(names);
  const callAll = (verb: PortCall['verb']) => ports.call(names.map((port) => ({ verb, port, isGuarded: true })));
  const added = await callAll('ADD');
  const deleted = await callAll('DEL');
  const [first, last] = [median(added.slice(0, SAMPLE)), median(added.slice(-SAMPLE))];
  return [
    { name: `guard: ADD, p50 of the first ${SAMPLE} ports`, value: first, unit: 'ms' },
    { name: `guard: ADD, last ${SAMPLE} of ${PORTS} ports, of the first`, value: last / first, unit: '' },
    { name: `guard: DEL among ${PORTS} ports, p50`, value: median(deleted.slice(0, SAMPLE)), unit: 'ms' },
  ];
}

/** Sends from a port with and without a guard in turn, to a host at the other end of the node's uplink. */
async function measureTraffic(ports: GuardedPorts, flood: string): Promise<Figure[]> {
  const { wire, location } = ports;
  await wire.addHost(SINK.name, SEGMENT, [`${SINK.ipv4}/16`, `${SINK.ipv6}/64`]);
  await ports.add(['flow']);
  for (const address of ADDRESSES) await wire.addAddress(location, 'flow', address, true);
  await wire.run(location, { command: '/usr/sbin/ip', args: ['link', 'set', 'flow', 'up'] });
  const targets = { IPv4: `${SINK.ipv4}:9`, IPv6: `[${SINK.ipv6}]:9` };
  await until('the network to forward', async () => (await wire.ping(location, SINK.ipv6)).lost === 0);
  const rates: Rates = new Map();
  for (let round = 0; round < ROUNDS; round++)
    for (const isGuarded of [false, true]) {
      await ports.call([{ verb: 'ADD', port: 'flow', isGuarded }]);
      for (const [family, target] of Object.entries(targets))
        for (const kind of ['packets', 'bytes'] as const) {
          const { received, perCpu } = await send(ports, flood, { kind, target });
          keep(rates, `${kind} of ${family} a second ${isGuarded}`, received);
          keep(rates, `${kind} of ${family} a second of CPU time ${isGuarded}`, perCpu);
        }
      await ports.call([{ verb: 'DEL', port: 'flow', isGuarded }]);
    }
  const names = Object.keys(targets).flatMap((family) =>
    (['packets', 'bytes'] as const).flatMap((kind) => [
      `${kind} of ${family} a second`,
      `${kind} of ${family} a second of CPU time`,
    ]),
  );
  return names.flatMap((name) => {
    const [without, withGuard] = [medianOf(rates.get(`${name} false`)!), medianOf(rates.get(`${name} true`)!)];
    return [
      { name: `guard: ${name}, without`, value: without, unit: '/s' },
      { name: `guard: ${name}, of without`, value: withGuard / without, unit: '', target: { atLeast: 0.97 } },
    ];
  });
}

function keep(rates: Rates, name: string, value: number): void {
  rates.set(name, [...(rates.get(name) ?? []), value]);
}

async function send(
  { wire, location }: GuardedPorts,
  command: string,
  { kind, target }: { readonly kind: keyof typeof MEASURES; readonly target: string },
): Promise<{ readonly received: number; readonly perCpu: number }> {
  const sink: WireLocation = `host/${SINK.name}`;
  const receiving = await wire.start(sink, { command, args: [MEASURES[kind], target] });
  await until('the receiver to be ready', () => Promise.resolve(receiving.output.stderr.includes('ready')));
  const sent = await wire.run(location, { command, args: [kind, target] });
  if (sent.exitCode !== 0) throw new Error(sent.stderr);
  await receiving.ended;
  return { received: Number(receiving.output.stdout), perCpu: Number(sent.stdout) };
}

function median(runs: readonly PluginRun[]): number {
  return percentilesOf(runs.map(({ ms }) => ms)).p50Ms;
}

function medianCpu(runs: readonly PluginRun[]): number {
  return medianOf(runs.map(({ cpuMs }) => cpuMs));
}

function medianOf(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
}
