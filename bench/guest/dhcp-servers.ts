import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startPackets } from '../../bed/holdfast/packets.js';
import { DhcpServers } from '../../bed/network/dhcp-servers.js';
import type { RunningCommand, Wire, WireLocation } from '../../bed/network/wire.js';
import { DNSMASQ_LOAD_ARGS, dnsmasqHosts, keaConfigs, neighbourCommands, SERVER } from './configs.js';
import { addSilentHost, buildPrograms, fillTable, onSegments, pidOf, runGuests } from './segment.js';
import { untilValue } from '../../bed/processes/wait.js';
import type { Figure } from '../report.js';
import { usageOf } from '../usage.js';

const GUESTS = 16_384;
const STORM = 2000;
const ROUNDS = 2;
const LOADS = { boot4: 'DHCPv4 boots', renew4: 'DHCPv4 renewals', boot6: 'DHCPv6 boots', renew6: 'DHCPv6 renewals' };
const DEFAULT_BUFFER = '/proc/sys/net/core/rmem_default';
const LARGE_BUFFER = 4 << 20;

type Load = keyof typeof LOADS;

/** A server that runs on a segment with generated guests. */
interface Candidate {
  readonly name: string;
  readonly crowd: WireLocation;
  /** Its process for a protocol. */
  readonly pid: (protocol: '4' | '6') => number;
  readonly stop: () => Promise<void>;
}

interface LoadResults {
  readonly exchanges: number;
  readonly seconds: number;
  readonly guests: number;
  readonly refused: number;
}

interface StormResults {
  readonly booted: number;
  readonly bootMs: number;
  readonly resent: number;
}

interface Cell {
  rate: number;
  cpu: number;
}

/** Compares holdfast-packets with Kea and dnsmasq of Debian; skipped without real networks or without these. */
export async function benchDhcpServers(): Promise<Figure[]> {
  const servers = await DhcpServers.find();
  if (typeof servers === 'string') {
    process.stderr.write(`  ${servers}\n`);
    return [];
  }
  return onSegments((wire, folder, progress) => new Comparison({ wire, folder, progress, servers }).run());
}

class Comparison {
  readonly #wire: Wire;
  readonly #folder: string;
  readonly #progress: (line: string) => void;
  readonly #servers: DhcpServers;
  #guests = '';
  #hosts = 0;

  constructor(of: { wire: Wire; folder: string; progress: (line: string) => void; servers: DhcpServers }) {
    this.#wire = of.wire;
    this.#folder = of.folder;
    this.#progress = of.progress;
    this.#servers = of.servers;
  }

  async run(): Promise<Figure[]> {
    this.#guests = await buildPrograms(this.#folder);
    const figures: Figure[] = [];
    const before = await readFile(DEFAULT_BUFFER, 'utf8');
    try {
      await writeFile(DEFAULT_BUFFER, String(LARGE_BUFFER));
      for (const start of [() => this.#startHoldfast(), () => this.#startKea(), () => this.#startDnsmasq()]) {
        const one = await start();
        figures.push(...(await this.#storm(one, 'a receive buffer of 4 MiB')));
        await one.stop();
      }
    } catch (error) {
      this.#progress(`no boots with a large receive buffer: ${String(error)}`);
    } finally {
      await writeFile(DEFAULT_BUFFER, before);
    }
    const all = [await this.#startHoldfast(), await this.#startKea(), await this.#startDnsmasq()];
    for (const one of all) figures.push(...(await this.#storm(one, 'the default receive buffer')));
    await this.#confirm(all[0]!);
    for (const load of Object.keys(LOADS) as Load[]) figures.push(...(await this.#compare(load, all)));
    for (const { name, pid } of all) {
      const pids = new Set([pid('4'), pid('6')]);
      const sizes = await Promise.all([...pids].map(async (each) => (await usageOf(each)).rssMiB));
      const value = sizes.reduce((sum, size) => sum + size);
      figures.push({ name: `${name}: memory (RSS) with 16,384 guests`, value, unit: 'MiB' });
    }
    for (const one of all) await one.stop();
    return figures;
  }

  /** Many guests boot at the same moment, for the first time. */
  async #storm({ name, crowd }: Candidate, buffer: string): Promise<Figure[]> {
    const flags = [`-count=${STORM}`, '-timeout=60s'];
    const { booted, bootMs, resent } = await runGuests<StormResults>(this.#wire, crowd, this.#guests, flags);
    const title = `${name}, ${buffer}: ${booted} of ${STORM} guests boot at once`;
    return [
      { name: title, value: bootMs / 1000, unit: 's' },
      { name: `${name}, ${buffer}: messages sent again`, value: resent, unit: '' },
    ];
  }

  /** Renewals of all guests, so that no address is probed any more. */
  async #confirm({ crowd }: Candidate): Promise<void> {
    for (const load of ['renew4', 'renew6']) {
      const flags = [`-load=${load}`, `-count=${GUESTS}`, '-for=4s'];
      const { guests } = await runGuests<LoadResults>(this.#wire, crowd, this.#guests, flags);
      if (guests < GUESTS) throw new Error(`${load}: only ${guests} of ${GUESTS} guests have renewed in 4 s`);
    }
  }

  /** The servers take turns; the better round of each counts, because the machine may do other work. */
  async #compare(load: Load, all: readonly Candidate[]): Promise<Figure[]> {
    const best = new Map<string, Cell>();
    for (let round = 0; round < ROUNDS; round++) {
      for (const one of all) {
        const { rate, cpu } = await this.#measure(load, one);
        const known = best.get(one.name) ?? { rate, cpu };
        best.set(one.name, { rate: Math.max(rate, known.rate), cpu: Math.min(cpu, known.cpu) });
      }
    }
    const [ours, ...others] = all.map(({ name }) => ({ name, ...best.get(name)! }));
    const title = LOADS[load];
    return [ours!, ...others].flatMap(({ name, rate, cpu }) => [
      { name: `${name}: ${title}`, value: rate, unit: 'exchanges/s' },
      { name: `${name}: CPU for one of ${title}`, value: cpu, unit: 'µs' },
      ...(name === ours!.name
        ? []
        : [
            {
              name: `${title}: rate to that of ${name}`,
              value: ours!.rate / rate,
              unit: '',
              ...(name === 'Kea' && { target: { atLeast: 2 } }),
            },
            { name: `${title}: CPU to that of ${name}`, value: ours!.cpu / cpu, unit: '' },
          ]),
    ]);
  }

  async #measure(load: Load, { name, crowd, pid }: Candidate): Promise<Cell> {
    // guests without a lease may not renew, and dnsmasq looks through lists
    const count = load.startsWith('boot') ? GUESTS : this.#booted.get(`${name} ${load.slice(-1)}`)!;
    const process = pid(load.endsWith('4') ? '4' : '6');
    const before = await usageOf(process);
    const flags = [`-load=${load}`, `-count=${count}`, '-for=4s'];
    const { exchanges, seconds, guests, refused } = await runGuests<LoadResults>(
      this.#wire,
      crowd,
      this.#guests,
      flags,
    );
    const after = await usageOf(process);
    if (exchanges === 0 || refused > 0)
      throw new Error(`${name} answered ${exchanges} and refused ${refused} of ${load}`);
    if (load.startsWith('boot')) this.#booted.set(`${name} ${load.slice(-1)}`, guests);
    const cell = { rate: exchanges / seconds, cpu: ((after.cpuSeconds - before.cpuSeconds) / exchanges) * 1e6 };
    this.#progress(`${name} ${load}: ${cell.rate.toFixed(0)}/s, ${cell.cpu.toFixed(1)} µs, ${guests} guests`);
    return cell;
  }

  readonly #booted = new Map<string, number>();

  async #startHoldfast(): Promise<Candidate> {
    const name = `holdfast-${this.#hosts++}`;
    const socket = join(this.#folder, `${name}.sock`);
    const host = await addSilentHost(this.#wire, name, `br-${name}`);
    const running = await startPackets(this.#wire, host, socket);
    await fillTable(socket, GUESTS);
    return this.#candidate('Holdfast', name, [running], [await pidOf(`packets-linux.*--socket=${socket}`)]);
  }

  async #startKea(): Promise<Candidate> {
    const name = `kea-${this.#hosts++}`;
    const host = await this.#addServerHost(name);
    const running: RunningCommand[] = [];
    const pids: number[] = [];
    for (const [program, config] of Object.entries(keaConfigs(GUESTS)) as ['kea-dhcp4' | 'kea-dhcp6', object][]) {
      running.push(await this.#servers.startKea(this.#wire, host, { program, config, folder: this.#folder }));
      pids.push(await pidOf(`sbin/${program} -c ${this.#folder}`));
    }
    return this.#candidate('Kea', name, running, pids);
  }

  async #startDnsmasq(): Promise<Candidate> {
    const name = `dnsmasq-${this.#hosts++}`;
    const host = await this.#addServerHost(name);
    const file = join(this.#folder, `${name}.hosts`);
    await writeFile(file, dnsmasqHosts(GUESTS));
    const args = [...DNSMASQ_LOAD_ARGS, `--dhcp-hostsfile=${file}`];
    const running = await this.#servers.startDnsmasq(this.#wire, host, args);
    return this.#candidate('dnsmasq', name, [running], [await pidOf(`sbin/dnsmasq .*${file}`)]);
  }

  async #addServerHost(name: string): Promise<WireLocation> {
    await this.#wire.addHost(name, `br-${name}`, [`${SERVER.ipv4}/16`, 'fd00:80::1/64']);
    const stdin = neighbourCommands(GUESTS);
    const { exitCode, stderr } = await this.#wire.run(`host/${name}`, {
      command: '/sbin/ip',
      args: ['-batch', '-'],
      stdin,
    });
    if (exitCode !== 0) throw new Error(`neighbours of ${name}: ${stderr}`);
    return `host/${name}`;
  }

  async #candidate(name: string, host: string, running: readonly RunningCommand[], pids: number[]): Promise<Candidate> {
    const crowd = await addSilentHost(this.#wire, `of-${host}`, `br-${host}`);
    const found: Candidate = {
      name,
      crowd,
      pid: (protocol) => (protocol === '4' ? pids[0]! : pids.at(-1)!),
      stop: async () => {
        for (const each of running) await each.stop();
      },
    };
    for (const load of ['boot4', 'boot6']) {
      const flags = [`-load=${load}`, `-count=${GUESTS}`, '-first=16000', '-window=1', '-for=500ms'];
      const ask = () => runGuests<LoadResults>(this.#wire, crowd, this.#guests, flags);
      await untilValue(
        `${name} to answer ${load}`,
        async () => ({ ...(await ask()), output: running.at(-1)?.output.stderr.slice(-400) }),
        ({ guests }) => guests > 0,
        { timeoutMs: 20_000 },
      );
    }
    return found;
  }
}
