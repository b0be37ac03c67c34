import { expect } from 'chai';
import { NETWORKS_ANNOTATION } from '../../../api/names.js';
import { type Pod, networkStatuses } from '../../../api/pod.js';
import { bareAddress } from '../../../test/bare-address.js';
import { NODES, PODS } from '../../../kube/resources.js';
import type { WireLocation } from '../../network/wire.js';
import { itOnWire, type WireContext } from '../describe.js';
import type { Story } from '../story.js';
import { until, untilValue } from '../../processes/wait.js';
import { waitForWireAddresses } from './wire-addresses.js';
import { ORDINARY_IMAGE } from '../../real-nodes/images/images.js';

/** An element of a pod's networks annotation. */
export interface NetworkElement {
  readonly name: string;
  readonly interface?: string;
  readonly ips?: readonly string[];
  readonly mac?: string;
  readonly 'ipam-claim-reference'?: string;
}

export interface PlainPodOptions {
  /** Binds the pod without a scheduler; any node by default. */
  readonly node?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** `affinity` of the pod's spec. */
  readonly affinity?: object;
  readonly networks: readonly NetworkElement[];
}

/** What Multus reports of one interface. */
export interface ReportedInterface {
  readonly name: string;
  readonly interface?: string;
  readonly ips?: readonly string[];
  readonly dns?: { readonly nameservers?: readonly string[]; readonly search?: readonly string[] };
}

/** The pods of one test, with their real networks. */
export class WireStory {
  readonly context: WireContext;
  readonly #story: Story;

  constructor(story: Story, on: WireContext) {
    this.#story = story;
    this.context = on;
  }

  /** Creates an ordinary pod. */
  createPod(name: string, options: PlainPodOptions): Promise<Pod> {
    return this.#story.client.create(PODS, plainPod(this.#story.ref(name), options));
  }

  /** Waits until a pod runs. */
  async waitRunning(name: string): Promise<Pod> {
    return untilValue(
      `pod ${name} to run`,
      () => this.#story.client.get(PODS, this.#story.ref(name)),
      ({ status }) => status?.phase === 'Running',
    );
  }

  /** Creates an ordinary pod with one network on `net1`, and waits until it runs. */
  async createNeighbour(nad: string, node?: string, name = 'neighbour'): Promise<Pod> {
    await this.createPod(name, { networks: [{ name: nad }], ...(node !== undefined && { node }) });
    return this.waitRunning(name);
  }

  async deletePod(name: string): Promise<void> {
    await this.#story.client.delete(PODS, this.#story.ref(name), { gracePeriodSeconds: 0 });
  }

  /** Waits for the kubelet's event about a sandbox that could not be created. @returns its message */
  async waitForSandboxFailure(name: string, words: RegExp): Promise<string> {
    return (await this.#story.waitForEvent(name, 'FailedCreatePodSandBox', words)).message ?? '';
  }

  /** The only launcher of a VM. */
  async launcher(vm: string): Promise<Pod> {
    const [launcher, ...others] = await this.#story.launchers(vm);
    expect(launcher, `a launcher of ${vm}`).not.to.equal(undefined);
    expect(others, `other launchers of ${vm}`).to.deep.equal([]);
    return launcher!;
  }

  /** Waits until the interface and network-status have exactly these addresses. */
  async waitForAddresses(pod: Pod, interfaceName: string, addresses: readonly string[]): Promise<void> {
    const { bed, wire } = this.context;
    await waitForWireAddresses({ client: bed.client, wire }, pod, { interface: interfaceName, addresses });
  }

  /** Waits until an interface and its network-status have the same single address. @returns it, with prefix length */
  async addressOf(pod: Pod, interfaceName = 'net1'): Promise<string> {
    const addresses = await this.context.wire.addressesOf(pod, interfaceName);
    expect(addresses, `addresses of ${interfaceName} of ${pod.metadata.name}`).to.have.length(1);
    await this.waitForAddresses(pod, interfaceName, addresses);
    return addresses[0]!;
  }

  /** The current network-status of an interface. */
  async reportedInterface(pod: Pod, interfaceName: string): Promise<ReportedInterface | undefined> {
    const { name } = pod.metadata;
    const current = await this.#story.client.get(PODS, this.#story.ref(name));
    return networkStatuses(current).find((each) => each.interface === interfaceName);
  }

  /** Announces the MAC address, as a guest does at its start by DHCP or ARP. The CNI plugin does not. */
  async announceGuest(launcher: Pod, interfaceName: string): Promise<void> {
    const { wire } = this.context.wire;
    for (const address of await this.context.wire.addressesOf(launcher, interfaceName)) {
      await wire.announce(this.context.wire.locationOf(launcher), interfaceName, bareAddress(address));
    }
  }

  /** Waits until these addresses answer all pings of the neighbour. */
  async waitReachable(neighbour: Pod, addresses: readonly string[]): Promise<void> {
    for (const address of addresses)
      await this.#untilAnswered(this.context.wire.locationOf(neighbour), bareAddress(address));
  }

  /** True if an address answers no ping. */
  async isSilent(neighbour: Pod, address: string): Promise<boolean> {
    const from = this.context.wire.locationOf(neighbour);
    const { received } = await this.context.wire.wire.ping(from, bareAddress(address), { count: 3, timeoutMs: 300 });
    return received === 0;
  }

  /** The output of `ip route` in the pod. */
  async routes(pod: Pod, family: 4 | 6 = 4): Promise<string> {
    const { wire } = this.context.wire;
    const args = [`-${family}`, 'route', 'show'];
    const { stdout } = await wire.run(this.context.wire.locationOf(pod), { command: '/usr/sbin/ip', args });
    return stdout;
  }

  /** Cordons a node while `act` runs. */
  async withNodeCordoned<T>(node: string, act: () => Promise<T>): Promise<T> {
    await this.#cordon(node, true);
    try {
      return await act();
    } finally {
      await this.#cordon(node, false);
    }
  }

  /** Removes the addresses of an interface, as if its machine or guest were off. */
  async silence(place: WireLocation, interfaceName: string): Promise<void> {
    await this.context.wire.wire.flushAddresses(place, interfaceName);
  }

  /** The other one of the bed's two nodes. */
  otherNode(node: string): string {
    return this.context.bed.nodes.find((each) => each !== node)!;
  }

  async #untilAnswered(from: WireLocation, address: string): Promise<void> {
    await untilValue(
      `${address} to answer ${from}`,
      () => this.context.wire.wire.ping(from, address, { count: 3 }),
      ({ received, duplicates }) => received === 3 && duplicates === 0,
    );
  }

  async #cordon(name: string, unschedulable: boolean): Promise<void> {
    const body = { spec: { unschedulable } };
    await this.#story.client.patch(NODES, { name }, { type: 'merge', body });
  }
}

/** A test that needs real pod networks. Elsewhere it is skipped. */
export function itWithWireStory(title: string, story: () => Story, run: (wire: WireStory) => Promise<void>): void {
  itOnWire(title, (on) => run(new WireStory(story(), on)));
}

/** Waits until no sandbox of the pod is left. */
export async function waitSandboxGone({ context }: WireStory, pod: Pod): Promise<void> {
  const { uid = '' } = pod.metadata;
  await until(`the sandbox of ${pod.metadata.name} to be gone`, () => context.wire.networks.find(uid) === undefined);
}

function plainPod(
  ref: { namespace: string; name: string },
  { node, labels, affinity, networks }: PlainPodOptions,
): Pod {
  const annotations = { [NETWORKS_ANNOTATION]: JSON.stringify(networks) };
  const metadata = { ...ref, annotations, ...(labels && { labels: { ...labels } }) };
  const containers = [{ name: 'c', image: ORDINARY_IMAGE }];
  const spec = {
    containers,
    terminationGracePeriodSeconds: 0,
    ...(node !== undefined && { nodeName: node }),
    ...(affinity && { affinity }),
  };
  return { metadata, spec };
}
