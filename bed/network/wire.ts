import { join } from 'node:path';
import { ensureNetworkBinaries, type Progress } from '../build/binaries.js';
import type { Child, Processes } from '../processes/processes.js';
import type { InterfaceState, PingOptions, PingResult, WireEvent, NamespaceContents } from './wire-events.js';
import { WireConnection, type OngoingRequest } from './wire-connection.js';

/** A network namespace: `node/<name>`, `pod/<id>`, `host/<name>`, `guest/<id>`, or the switch between them. */
export type WireLocation = `node/${string}` | `pod/${string}` | `host/${string}` | `guest/${string}` | 'fabric';

/** The result of a program that ran in a network namespace. */
export interface CommandResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Command {
  readonly command: string;
  readonly args?: readonly string[];
  /** Its whole environment. */
  readonly env?: Readonly<Record<string, string>>;
  readonly stdin?: string;
}

export interface LastingCommand extends Command {
  /**
   * `private`: the process may write to /run and /var/lib, which are empty at first and vanish with it. The rest of the machine is
   * read-only.
   */
  readonly mounts?: 'private';
}

/** A program that runs in a network namespace, with its output so far. */
export interface RunningCommand extends OngoingRequest<{ readonly exitCode: number }> {
  readonly output: { readonly stdout: string; readonly stderr: string };
  /** Sends a signal, such as SIGUSR1, to the process and its children. */
  signal(name: NodeJS.Signals): Promise<void>;
}

/** The connection of a guest's interface to its launcher. */
export interface GuestPlug {
  readonly guest: string;
  /** Container id of the launcher. */
  readonly pod: string;
  /** The interface in the launcher. */
  readonly interface: string;
  /** The interface in the guest, which is created with `mac` the first time. */
  readonly name: string;
  readonly mac: string;
}

/** A running watch of an interface, with its events so far. */
export interface Watch extends OngoingRequest<object> {
  readonly events: readonly WireEvent[];
}

/** A running capture of frames. */
export interface Capture extends OngoingRequest<object> {
  readonly frames: readonly Buffer[];
}

/**
 * Real network namespaces of nodes, pods and hosts, held by one process of the bed (`netbed`). They are invisible on the machine
 * and end with that process, even after SIGKILL. All methods reject with errors of the kernel or of netbed.
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

  /** Tests what the machine allows. @returns the failures; empty if everything works */
  async probe(): Promise<string> {
    const { missing } = await this.#connection.request<{ missing: string }>('probe');
    return missing;
  }

  /**
   * Adds a node with its own mounts: `<dir>/run-holdfast` is its `/run/holdfast`, `<dir>/var-lib-cni` its `/var/lib/cni`.
   * @param apiPort port of the API server on 127.0.0.1, which is reachable from the node too
   */
  async addNode(node: { name: string; dir: string; apiPort: number }): Promise<void> {
    await this.#connection.request('addNode', node);
  }

  /**
   * Connects a node to a segment: by a bridge with the segment's name and an uplink, or (`nic`) by an interface of that name, as
   * macvlan needs it. Idempotent.
   */
  async join(node: string, segment: string, as: 'bridge' | 'nic' = 'bridge'): Promise<void> {
    await this.#connection.request('join', { node, segment, as });
  }

  /** Adds an empty sandbox. @returns the path for CNI_NETNS, valid until the pod is removed */
  async addPod(node: string, pod: string): Promise<string> {
    const { netns } = await this.#connection.request<{ netns: string }>('addPod', { node, pod });
    return netns;
  }

  /** Removes a pod with all its interfaces. Idempotent. */
  async removePod(pod: string): Promise<void> {
    await this.#connection.request('removePod', { pod });
  }

  /** Adds a host that is not a node, with one interface `eth0` on a segment. @param addresses with prefix lengths */
  async addHost(name: string, segment: string, addresses: readonly string[]): Promise<void> {
    await this.#connection.request('addHost', { name, segment, addresses });
  }

  async removeHost(name: string): Promise<void> {
    await this.#connection.request('removeHost', { name });
  }

  /** Adds a VM without interfaces: the namespace `guest/<id>` is that of its kernel. */
  async addGuest(guest: string): Promise<void> {
    await this.#connection.request('addGuest', { guest });
  }

  /** Removes a guest with its interfaces and processes. Idempotent. */
  async removeGuest(guest: string): Promise<void> {
    await this.#connection.request('removeGuest', { guest });
  }

  /** Prepares an interface of a launcher for bridge binding, as virt-handler does, and sets it up. Idempotent. */
  async prepareLauncher(pod: string, interfaceName: string): Promise<void> {
    await this.#connection.request('prepare', { pod, interface: interfaceName });
  }

  /**
   * Connects an interface of a guest to a prepared launcher. If it was connected to another one, it moves as in a live migration:
   * its link stays up, and it is announced at its new port.
   */
  async plugGuest(plug: GuestPlug): Promise<void> {
    await this.#connection.request('plugGuest', plug);
  }

  /** Removes an interface from a guest. Idempotent. */
  async unplugGuest(guest: string, name: string): Promise<void> {
    await this.#connection.request('unplugGuest', { guest, name });
  }

  /** Starts a program in a namespace, which runs until it ends or is stopped with SIGTERM. It ends with the namespace. */
  async start(location: WireLocation, command: LastingCommand): Promise<RunningCommand> {
    const output = { stdout: '', stderr: '' };
    const take = (event: unknown) => {
      const { stdout = '', stderr = '' } = event as Partial<typeof output>;
      output.stdout += stdout;
      output.stderr += stderr;
    };
    const body = { in: location, ...command };
    const lasting = await this.#connection.begin<{ exitCode: number }>('start', body, take);
    const signal = async (name: NodeJS.Signals) => {
      await this.#connection.request('signal', { request: lasting.id, signal: name });
    };
    return { ...lasting, output, signal };
  }

  /** Runs a program in a namespace, a CNI plugin in that of its node. The timeout is two minutes. */
  run(location: WireLocation, command: Command): Promise<CommandResult> {
    return this.#connection.request('run', { in: location, ...command });
  }

  /** Sends `options.count` ICMP or ICMPv6 echo requests (5 by default) and waits for the replies. */
  ping(from: WireLocation, target: string, options: PingOptions = {}): Promise<PingResult> {
    return this.#connection.request('ping', { count: 5, intervalMs: 20, ...options, from, target });
  }

  /** Sends echo requests until it is stopped, to measure losses during an event. */
  startPing(
    from: WireLocation,
    target: string,
    options: Omit<PingOptions, 'count'> = {},
  ): Promise<OngoingRequest<PingResult>> {
    return this.#connection.begin('ping', { intervalMs: 20, ...options, from, target }, () => undefined);
  }

  /**
   * Watches ARP and NDP frames of an interface and changes of its neighbour table. For a bridge (a segment has one in `fabric`),
   * also changes of its forwarding table.
   */
  async watch(location: WireLocation, interfaceName: string): Promise<Watch> {
    const events: WireEvent[] = [];
    const body = { in: location, interface: interfaceName };
    const lasting = await this.#connection.begin<object>('watch', body, (event) => events.push(event as WireEvent));
    return { ...lasting, events };
  }

  /** Sends frames from an interface as they are, from their Ethernet header on. */
  async sendFrames(location: WireLocation, interfaceName: string, frames: readonly Buffer[]): Promise<void> {
    const body = { in: location, interface: interfaceName, frames: frames.map((frame) => frame.toString('base64')) };
    await this.#connection.request('sendFrames', body);
  }

  /** Collects the frames that an interface receives and that contain a text, until it is stopped. */
  async capture(location: WireLocation, interfaceName: string, marker: string): Promise<Capture> {
    const frames: Buffer[] = [];
    const body = { in: location, interface: interfaceName, marker };
    const take = (event: unknown) => frames.push(Buffer.from((event as { data: string }).data, 'base64'));
    return { ...(await this.#connection.begin<object>('capture', body, take)), frames };
  }

  /** All interfaces except lo. */
  interfaces(location: WireLocation): Promise<InterfaceState[]> {
    return this.#connection.request('interfaces', { in: location });
  }

  /**
   * Adds an address, as a guest does at its start, with duplicate address detection for IPv6.
   * @param address with prefix length
   * @param atOnce skips duplicate address detection
   */
  async addAddress(location: WireLocation, interfaceName: string, address: string, atOnce = false): Promise<void> {
    await this.#connection.request('addAddress', { in: location, interface: interfaceName, address, atOnce });
  }

  /** Removes all addresses except link-local ones. */
  async flushAddresses(location: WireLocation, interfaceName: string): Promise<void> {
    await this.#connection.request('flushAddresses', { in: location, interface: interfaceName });
  }

  async setMac(location: WireLocation, interfaceName: string, mac: string): Promise<void> {
    await this.#connection.request('setMac', { in: location, interface: interfaceName, mac });
  }

  /** Sends gratuitous ARP or an unsolicited neighbour advertisement. @param mac replaces the interface's own */
  async announce(location: WireLocation, interfaceName: string, address: string, mac?: string): Promise<void> {
    await this.#connection.request('announce', { in: location, interface: interfaceName, address, mac });
  }

  /** Advertises an IPv6 prefix, as a router does: all hosts of the segment form an address of it. */
  async advertiseRouter(location: WireLocation, interfaceName: string, prefix: string): Promise<void> {
    await this.#connection.request('advertise', { in: location, interface: interfaceName, address: prefix });
  }

  /** All network namespaces by name, with `fabric`, the switch between them. */
  inventory(): Promise<Record<string, NamespaceContents>> {
    return this.#connection.request('inventory');
  }
}

/** The reason why this machine cannot have real pod networks, as far as it is known before the build. */
export function noRealNetworks(): string | undefined {
  if (process.env.HOLDFAST_BED_NETWORK === 'simulated') return 'HOLDFAST_BED_NETWORK is "simulated"';
  return process.platform === 'linux' ? undefined : 'real ones need Linux';
}

/**
 * Starts netbed.
 * @returns undefined if this machine does not allow real pod networks; a line of progress names the reason
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
  progress(`pod networks are simulated, because this machine does not allow real ones: ${missing}`);
  await wire.child.stop();
  return undefined;
}
