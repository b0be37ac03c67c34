import { join } from 'node:path';
import { ensureModule } from '../bed/build/binaries.js';
import type { WireLocation } from '../bed/network/wire.js';
import { until } from '../bed/processes/wait.js';
import { percentilesOf } from './load.js';
import type { PluginRun } from './cni/plugin-caller.js';
import { onSegments } from './guest/segment.js';
import { ADDRESSES, type PortCall, type PortFilter, GuardedPorts, SEGMENT } from './guard/ports.js';
import type { Figure } from './report.js';

const FLOOD = join(import.meta.dirname, 'guard', 'flood');
const PORTS = 1000;
const SAMPLE = 100;
const ROUNDS = 10;
const SINK = { name: 'guard-sink', ipv4: '10.81.0.9', ipv6: 'fd00:81::9' };
const TARGETS = { IPv4: `${SINK.ipv4}:9`, IPv6: `[${SINK.ipv6}]:9` };
const KINDS = ['packets', 'bytes'] as const;
const FILTERS = ['none', 'one rule', 'guard'] as const satisfies PortFilter[];
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

/** Alternates, so that other load on the machine affects both. Each interface is new, as those of a runtime are. */
async function measureCalls(ports: GuardedPorts): Promise<Figure[]> {
  const calls = Array.from({ length: 2 * SAMPLE }, (_, number) => ({
    port: nameOf('c', number),
    filter: number % 2 === 0 ? ('none' as const) : ('guard' as const),
  }));
  await ports.add(calls.map(({ port }) => port));
  const runs = {
    ADD: await ports.call(calls.map((call) => ({ ...call, verb: 'ADD' }))),
    DEL: await endAll(ports, calls),
  };
  return (['ADD', 'DEL'] as const).flatMap((verb) => {
    const [without, withGuard] = (['none', 'guard'] as const).map((filter) =>
      runs[verb].filter((_, at) => calls[at]!.filter === filter),
    ) as [PluginRun[], PluginRun[]];
    const more = (of: typeof median) => of(withGuard) - of(without);
    const target = verb === 'ADD' && { target: { atMost: 3 } };
    return [
      { name: `guard: ${verb} without, p50`, value: median(without), unit: 'ms' },
      { name: `guard: ${verb} with, p50 more`, value: more(median), unit: 'ms', ...target },
      { name: `guard: ${verb} without, CPU`, value: medianCpu(without), unit: 'ms' },
      { name: `guard: ${verb} with, CPU more`, value: more(medianCpu), unit: 'ms', ...target },
    ];
  });
}

async function measureManyPorts(ports: GuardedPorts): Promise<Figure[]> {
  const calls = Array.from({ length: PORTS }, (_, number) => ({ port: nameOf('m', number), filter: 'guard' as const }));
  await ports.add(calls.map(({ port }) => port));
  const added = await ports.call(calls.map((call) => ({ ...call, verb: 'ADD' })));
  const deleted = await endAll(ports, calls.slice(0, SAMPLE));
  const [first, last] = [median(added.slice(0, SAMPLE)), median(added.slice(-SAMPLE))];
  return [
    { name: `guard: ADD, p50 of the first ${SAMPLE} ports`, value: first, unit: 'ms' },
    { name: `guard: ADD, last ${SAMPLE} of ${PORTS} ports, of the first`, value: last / first, unit: '' },
    { name: `guard: DEL among ${PORTS} ports, p50`, value: median(deleted), unit: 'ms' },
  ];
}

/** The interface is gone before DEL. */
async function endAll(ports: GuardedPorts, calls: readonly Omit<PortCall, 'verb'>[]): Promise<PluginRun[]> {
  const runs: PluginRun[] = [];
  for (const call of calls) {
    await ports.remove([call.port]);
    runs.push(...(await ports.call([{ ...call, verb: 'DEL' }])));
  }
  return runs;
}

/** An interface's MAC address has these four characters. */
function nameOf(kind: string, number: number): string {
  return kind + number.toString(36).padStart(3, '0');
}

/** Sends from ports without filter, with one rule, and with a guard in turn, to a host at the other end of the node's uplink. */
async function measureTraffic(ports: GuardedPorts, flood: string): Promise<Figure[]> {
  await ports.wire.addHost(SINK.name, SEGMENT, [`${SINK.ipv4}/16`, `${SINK.ipv6}/64`]);
  const rates: Rates = new Map();
  for (let round = 0; round < ROUNDS; round++)
    for (const [at, filter] of FILTERS.entries())
      await onPort(ports, { port: nameOf('f', round * FILTERS.length + at), filter }, async () => {
        for (const [family, target] of Object.entries(TARGETS))
          for (const kind of KINDS) {
            const { received, perCpu } = await send(ports, flood, { kind, target });
            keep(rates, `${kind} of ${family} a second ${filter}`, received);
            keep(rates, `${kind} of ${family} a second of CPU time ${filter}`, perCpu);
          }
      });
  const names = Object.keys(TARGETS).flatMap((family) =>
    KINDS.flatMap((kind) => [`${kind} of ${family} a second`, `${kind} of ${family} a second of CPU time`]),
  );
  return names.flatMap((name) => {
    const [without, ...others] = FILTERS.map((filter) => rates.get(`${name} ${filter}`)!);
    const [oneRule, withGuard] = others.map((rate) => medianOf(rate.map((value, round) => value / without![round]!)));
    return [
      { name: `guard: ${name}, without`, value: medianOf(without!), unit: '/s' },
      { name: `guard: ${name} with one rule, of without`, value: oneRule!, unit: '' },
      { name: `guard: ${name}, of without`, value: withGuard!, unit: '', target: { atLeast: 0.97 } },
    ];
  });
}

async function onPort(ports: GuardedPorts, call: Omit<PortCall, 'verb'>, measure: () => Promise<void>): Promise<void> {
  const { wire, location } = ports;
  await ports.add([call.port]);
  await ports.call([{ ...call, verb: 'ADD' }]);
  await wire.run(location, { command: '/usr/sbin/ip', args: ['link', 'set', call.port, 'up'] });
  for (const address of ADDRESSES) await wire.addAddress(location, call.port, address, true);
  await until('the network to forward', async () => (await wire.ping(location, SINK.ipv6)).lost === 0);
  await measure();
  await endAll(ports, [call]);
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
