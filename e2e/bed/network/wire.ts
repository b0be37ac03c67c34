import { join } from 'node:path';
import { ensureNetworkBinaries, type Progress } from '../binaries.js';
import type { Child, Processes } from '../processes.js';
import type { InterfaceState, PingOptions, PingResult, WireEvent, NamespaceContents } from './wire-events.js';
import { WireConnection, type OngoingRequest } from './wire-connection.js';

/** `node/<name>`, `pod/<id>`, `host/<name>` or the switch between them: where something happens. */
export type WireLocation = `node/${string}` | `pod/${string}` | `host/${string}` | 'fabric';

/** What a program left that ran inside a place. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Command {
  readonly command: string;
  readonly args?: readonly string[];
  /** All that it sees. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

/** What an interface's neighbours say, as it comes. */
export interface Watch extends OngoingRequest<object> {
  readonly events: readonly WireEvent[];
}

/**
 * Real network namespaces of nodes, pods and hosts, held by one process of the bed (`netbed`). Nothing of them is visible on
 * the machine, and all of it is gone with that process, even after SIGKILL. All methods reject with the words of the kernel
 * or of netbed.
 */
export class Wire {
  readonly child: Child;
  /** The folder of Multus, the CNI plugins and `hotplug`. */
  readonly binaries: string;
  readonly #connection: WireConnection;

  constructor(processes: Processes, binaries: string) {
    this.binaries = binaries;
    this.child = processes.start({ name: 'netbed', command: join(binaries, 'netbed'), args: [], hasPipes: true });
    this.#connection = new WireConnection(this.child);
  }

  /** What the machine refuses, in words; empty where everything works. Leaves nothing. */
  async probe(): Promise<string> {
    const { missing } = await this.#connection.request<{ missing: string }>('probe');
    return missing;
  }

  /**
   * A node with its own mounts: `<dir>/run-holdfast` is its `/run/holdfast`, `<dir>/var-lib-cni` its `/var/lib/cni`.
   * @param apiPort of 127.0.0.1, which leads to the API server from inside, too
   */
  async addNode(node: { name: string; dir: string; apiPort: number }): Promise<void> {
    await this.#connection.request('addNode', node);
  }

  /** With all its pods. Idempotent. */
  async removeNode(name: string): Promise<void> {
    await this.#connection.request('removeNode', { name });
  }

  /**
   * Connects a node to a segment, once: with a bridge of the segment's name that has an uplink, or (`nic`) with an interface
   * of that name, as macvlan wants it.
   */
  async join(node: string, segment: string, as: 'bridge' | 'nic' = 'bridge'): Promise<void> {
    await this.#connection.request('join', { node, segment, as });
  }

  /** An empty sandbox. @returns the path for CNI_NETNS, which stays until the pod is removed and then leads nowhere */
  async addPod(node: string, pod: string): Promise<string> {
    const { netns } = await this.#connection.request<{ netns: string }>('addPod', { node, pod });
    return netns;
  }

  /** With all its interfaces. Idempotent. */
  async removePod(pod: string): Promise<void> {
    await this.#connection.request('removePod', { pod });
  }

  /** A machine that is no node, with its one interface `eth0` at a segment. @param addresses with prefix lengths */
  async addHost(name: string, segment: string, addresses: readonly string[]): Promise<void> {
    await this.#connection.request('addHost', { name, segment, addresses });
  }

  async removeHost(name: string): Promise<void> {
    await this.#connection.request('removeHost', { name });
  }

  /** Runs a program inside; a CNI plugin belongs inside its node. It has two minutes. */
  run(location: WireLocation, command: Command): Promise<CommandResult> {
    return this.#connection.request('run', { in: location, ...command });
  }

  /** Sends `options.count` ICMP or ICMPv6 echo requests (5 by default) and waits for the answers. */
  ping(from: WireLocation, target: string, options: PingOptions = {}): Promise<PingResult> {
    return this.#connection.request('ping', { count: 5, intervalMs: 20, ...options, from, target });
  }

  /** Sends echo requests until it is stopped, so that a test sees what an event costs. */
  startPing(
    from: WireLocation,
    target: string,
    options: Omit<PingOptions, 'count'> = {},
  ): Promise<OngoingRequest<PingResult>> {
    return this.#connection.begin('ping', { intervalMs: 20, ...options, from, target }, () => undefined);
  }

  /**
   * ARP and NDP frames of an interface, and changes of the place's neighbour table for it, from now on. Of a bridge (a
   * segment has one in `fabric`), also what its forwarding table learns.
   */
  async watch(location: WireLocation, interfaceName: string): Promise<Watch> {
    const events: WireEvent[] = [];
    const body = { in: location, interface: interfaceName };
    const lasting = await this.#connection.begin<object>('watch', body, (event) => events.push(event as WireEvent));
    return { ...lasting, events };
  }

  /** All interfaces but lo. */
  interfaces(location: WireLocation): Promise<InterfaceState[]> {
    return this.#connection.request('interfaces', { in: location });
  }

  /**
   * Takes an address as a guest does that starts: IPv6 looks for duplicates first; `atOnce` as one that had it all along.
   * @param address with prefix length
   */
  async addAddress(location: WireLocation, interfaceName: string, address: string, atOnce = false): Promise<void> {
    await this.#connection.request('addAddress', { in: location, interface: interfaceName, address, atOnce });
  }

  /** Removes all addresses but link-local ones. */
  async flushAddresses(location: WireLocation, interfaceName: string): Promise<void> {
    await this.#connection.request('flushAddresses', { in: location, interface: interfaceName });
  }

  async setMac(location: WireLocation, interfaceName: string, mac: string): Promise<void> {
    await this.#connection.request('setMac', { in: location, interface: interfaceName, mac });
  }

  /** Gratuitous ARP or an unsolicited neighbour advertisement. @param mac in place of the interface's own */
  async announce(location: WireLocation, interfaceName: string, address: string, mac?: string): Promise<void> {
    await this.#connection.request('announce', { in: location, interface: interfaceName, address, mac });
  }

  /** All that there is, by place (and `fabric`, the switch between them). */
  inventory(): Promise<Record<string, NamespaceContents>> {
    return this.#connection.request('inventory');
  }
}

/** Why this machine cannot have real pod networks, as far as that is known before anything is built. */
export function noRealNetworks(): string | undefined {
  if (process.env.HOLDFAST_BED_NETWORK === 'simulated') return 'HOLDFAST_BED_NETWORK is "simulated"';
  return process.platform === 'linux' ? undefined : 'real ones need Linux';
}

/**
 * Starts the wire.
 * @returns undefined, after a line of progress that says why, where this machine allows none of it
 */
export async function openWire(processes: Processes, progress: Progress): Promise<Wire | undefined> {
  const reason = noRealNetworks();
  if (reason !== undefined) {
    progress(`pod networks are simulated: ${reason}`);
    return undefined;
  }
  const wire = new Wire(processes, await ensureNetworkBinaries(progress));
  const missing = await wire.probe();
  if (missing === '') return wire;
  progress(`pod networks are simulated: this machine does not allow real ones: ${missing}`);
  await wire.child.stop();
  return undefined;
}
