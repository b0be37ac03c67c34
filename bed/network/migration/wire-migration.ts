import { setTimeout as pause } from 'node:timers/promises';
import { parseAddress } from '../../../addressing/address/address.js';
import { guardRules } from '../../../cni/agent/guard/claim-rules.js';
import { bareAddress } from '../../../test/bare-address.js';
import { untilValue } from '../../processes/wait.js';
import { type PortAnswer, answerAdds } from '../guard/rule-agent.js';
import { nodeFolder } from '../open-pod-networks.js';
import type { AttachedPod } from '../pod-networks.js';
import { Semaphore } from '../semaphore.js';
import type { PingResult } from '../wire-events.js';
import type { KubeletPod } from '../../node/pod.js';
import type { WireFixture } from '../fixture/wire-fixture.js';
import type { OngoingRequest } from '../wire-connection.js';
import type { WireLocation, Watch, Wire } from '../wire.js';
import { holdConnection } from './tcp-connection.js';
import { GUEST, GUEST_ADDRESSES, INTERFACE, LauncherNamespace } from './launcher-namespace.js';
import {
  countLosses,
  countMessages,
  countNeighbourMoves,
  countSwitchMoves,
  type Changes,
  type Losses,
  type StepTimes,
} from './counts.js';

export interface MigrationCase {
  /** Name of the network and of its bridge or interface on nodes, unique for each case. */
  readonly segment: string;
  readonly as: 'bridge' | 'nic';
  /** The NAD's config, without its name. */
  readonly config: object;
  /** MAC address in the VM's spec, used on source and target. By default the plugin generates one for each. */
  readonly mac?: string;
  /** Interval at which the guest sends messages on its own; by default it never does. */
  readonly guestSpeaksEveryMs?: number;
  /** Another host resolves the guest's addresses for the first time while the target is set up. */
  readonly stranger?: boolean;
  /** The target's port is held until the guest comes. The config delegates IPAM to Holdfast, whose plugin does it. */
  readonly held?: boolean;
}

/** Echo requests to one of the guest's addresses, one every 10 ms. */
export interface Traffic {
  readonly lost: Losses;
  /** Requests that the target answered while the guest was on the source. */
  readonly misdirected: number;
  /** Changes of the client's neighbour table. */
  readonly neighbourMoves: Changes;
}

export interface MigrationOutcome {
  /** The error of Multus if the target was not set up. */
  readonly attachError?: string;
  readonly ipv4: Traffic;
  readonly ipv6: Traffic;
  /** Numbers of messages of the target while it had its addresses, by kind. */
  readonly targetMessages: Readonly<Record<string, number>>;
  /** Changes of the port of the guest's MAC address in the switch between the nodes. */
  readonly switchMoves: Changes;
  /** The result of a TCP connection to the guest until it migrated: `kept`, or the code of the error. */
  readonly connection: string;
}

const EVERY_MS = 10;
/** Time before the target is created. */
const CALM_MS = 1000;
/** Time from ADD until virt-handler prepares the interface. On a real cluster, a launcher takes some seconds to start. */
const SET_UP_MS = 2500;
/** Time from then until the guest migrates. */
const COPY_MS = 2500;
/** Time from then until DEL of the source, and from there to the end. */
const AFTER_MS = 1000;

interface SwitchPorts {
  readonly source: string;
  readonly target: string;
}

interface RunningObservation {
  readonly client: Watch;
  readonly bridge: Watch;
  readonly targetPort: Watch;
  readonly pings: readonly [OngoingRequest<PingResult>, OngoingRequest<PingResult>];
  readonly conversation: Promise<string>;
}

/**
 * Observes a live migration on real networks (Multus, the network's plugin, bridges, veth pairs). A guest migrates from a launcher
 * on node-1 to one on node-2, and a third host of the segment communicates with it all the time.
 */
class WireMigration {
  readonly #stage: WireFixture;
  readonly #wire: Wire;
  readonly #move: MigrationCase;
  readonly #client: WireLocation;
  readonly #stranger: WireLocation;
  readonly #pods: KubeletPod[] = [];
  /** The rules of the target's port. */
  #guard: object | undefined;

  constructor(stage: WireFixture, move: MigrationCase) {
    this.#stage = stage;
    this.#wire = stage.wire;
    this.#move = move;
    this.#client = `host/${move.segment}-client`;
    this.#stranger = `host/${move.segment}-stranger`;
  }

  /** What the agents answer to the ADDs of this case. */
  get answer(): PortAnswer {
    return { addresses: GUEST_ADDRESSES, ...(this.#guard && { guard: this.#guard }) };
  }

  /** @param preparing lets one case at a time connect nodes and hosts: the new ports of the switch have to be its own */
  async run(preparing: Semaphore): Promise<MigrationOutcome> {
    const { segment, config } = this.#move;
    await this.#stage.createNetwork(segment, config);
    const ports = await preparing.run(async () => {
      const joined = { source: await this.#join('node-1'), target: await this.#join('node-2') };
      await this.#wire.addHost(`${segment}-client`, segment, ['192.168.50.100/24', 'fd00:50::100/64']);
      await this.#wire.addHost(`${segment}-stranger`, segment, ['192.168.50.101/24', 'fd00:50::101/64']);
      return joined;
    });
    try {
      return await this.#observe(ports);
    } finally {
      for (const pod of this.#pods) await this.#stage.removePod(pod);
      await this.#wire.removeHost(`${segment}-client`);
      await this.#wire.removeHost(`${segment}-stranger`);
    }
  }

  async #observe(ports: SwitchPorts): Promise<MigrationOutcome> {
    const sourcePod = await this.#createPod('node-1');
    const source = new LauncherNamespace(this.#wire, (await this.#stage.networks.attach(sourcePod)).location);
    await source.runGuest();
    const { mac } = await untilValue(
      'the guest to have verified addresses',
      () => source.state(),
      ({ addresses }) => addresses.every(({ tentative }) => !tentative),
    );
    const observation = await this.#beginObservation(source.location, ports);
    const pinged = Date.now();
    await pause(CALM_MS);
    this.#guard = this.#move.held ? holdOf(mac) : undefined;

    const added = Date.now();
    const attached = await this.#attachTarget();
    if (this.#move.stranger) await this.#askAsStranger();
    await pause(Math.max(0, added + SET_UP_MS - Date.now()));
    const target = typeof attached === 'string' ? undefined : new LauncherNamespace(this.#wire, attached.location);
    const misdirected = (await target?.echoes()) ?? { ipv4: 0, ipv6: 0 };
    const prepared = Date.now();
    await target?.prepare();
    await pause(COPY_MS);
    const conversation = await observation.conversation;

    const moved = Date.now();
    if (target) {
      await source.stopGuest();
      await target.runGuest(mac);
      await pause(AFTER_MS);
      await this.#stage.networks.detach(sourcePod);
    }
    await pause(AFTER_MS);
    const steps: StepTimes = { pinged, added, prepared, moved };
    const { client, bridge, targetPort, pings } = observation;
    const [ipv4, ipv6] = await Promise.all([pings[0].stop(), pings[1].stop()]);
    await Promise.all([client, bridge, targetPort].map((watch) => watch.stop()));
    const trafficOf = (family: keyof typeof GUEST, result: PingResult): Traffic => ({
      lost: countLosses(result, steps, EVERY_MS),
      misdirected: misdirected[family],
      neighbourMoves: countNeighbourMoves(client.events, GUEST[family], mac, steps),
    });
    return {
      ...(typeof attached === 'string' && { attachError: attached }),
      ipv4: trafficOf('ipv4', ipv4),
      ipv6: trafficOf('ipv6', ipv6),
      targetMessages: countMessages(targetPort.events, steps),
      switchMoves: countSwitchMoves(bridge.events, mac, ports.source, steps),
      connection: conversation,
    };
  }

  async #beginObservation(guest: WireLocation, ports: SwitchPorts): Promise<RunningObservation> {
    const { segment, guestSpeaksEveryMs } = this.#move;
    const client = await this.#wire.watch(this.#client, 'eth0');
    const bridge = await this.#wire.watch('fabric', segment);
    const targetPort = await this.#wire.watch('fabric', ports.target);
    const forMs = CALM_MS + SET_UP_MS + COPY_MS;
    if (guestSpeaksEveryMs) {
      const count = Math.floor(forMs / guestSpeaksEveryMs);
      void this.#wire.ping(guest, '192.168.50.100', { intervalMs: guestSpeaksEveryMs, count });
    }
    const ping = (ip: string) => this.#wire.startPing(this.#client, ip, { intervalMs: EVERY_MS });
    const pings = [await ping(GUEST.ipv4), await ping(GUEST.ipv6)] as const;
    const conversation = holdConnection(this.#wire, {
      server: guest,
      client: this.#client,
      address: GUEST.ipv4,
      forMs,
    });
    return { client, bridge, targetPort, pings, conversation };
  }

  async #attachTarget(): Promise<AttachedPod | string> {
    try {
      return await this.#stage.networks.attach(await this.#createPod('node-2'));
    } catch (error) {
      return String(error);
    }
  }

  async #askAsStranger(): Promise<void> {
    for (const ip of Object.values(GUEST)) await this.#wire.ping(this.#stranger, ip, { count: 3, timeoutMs: 100 });
  }

  async #createPod(node: string): Promise<KubeletPod> {
    const { segment: name, mac } = this.#move;
    const selection = { name, interface: INTERFACE, ips: GUEST_ADDRESSES, ...(mac && { mac }) };
    const pod = await this.#stage.createPod(node, [selection]);
    this.#pods.push(pod);
    return pod;
  }

  /** @returns the switch's port to the node */
  async #join(node: string): Promise<string> {
    const ports = async () => (await this.#wire.inventory()).fabric?.interfaces ?? [];
    const before = await ports();
    await this.#wire.join(node, this.#move.segment, this.#move.as);
    return (await ports()).find((name) => name.startsWith('port') && !before.includes(name))!;
  }
}

/**
 * Observes several migrations on one stage, so many at once.
 * @returns their outcomes, in their order
 */
export async function observeMigrations(
  stage: WireFixture,
  cases: readonly MigrationCase[],
  atOnce = 1,
): Promise<PromiseSettledResult<MigrationOutcome>[]> {
  const moves = new Map(cases.map((move) => [move.segment, new WireMigration(stage, move)]));
  const answerFor = (network: string) => moves.get(network)!.answer;
  const folders = ['node-1', 'node-2'].map((node) => `${nodeFolder(stage.plane, node)}/run-holdfast`);
  const agents = await Promise.all(folders.map((folder) => answerAdds(folder, answerFor)));
  const [running, preparing] = [new Semaphore(atOnce), new Semaphore(1)];
  try {
    return await Promise.allSettled([...moves.values()].map((move) => running.run(() => move.run(preparing))));
  } finally {
    for (const agent of agents) agent.close();
  }
}

/** A guard that only observes, because also without filtering nothing may disturb the guest. */
function holdOf(mac: string): object {
  const addresses = GUEST_ADDRESSES.map((address) => parseAddress(bareAddress(address)));
  const allowed = { addresses: [], macs: [] };
  const rules = guardRules({ mode: 'Observe', mac, addresses, allowed, isHeld: true, vlans: [] });
  return { ...rules, isGuest: true };
}
