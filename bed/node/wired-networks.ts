import { controllingVmi } from '../../api/pod.js';
import { ethernet, reverseArp } from '../network/frames.js';
import type { PodNetworks } from '../network/pod-networks.js';
import type { WireLocation, Wire } from '../network/wire.js';
import { ArpAnswers } from './arp-answers.js';
import { NO_SANDBOX, type GuestNetworks, type SandboxNetworks, type SandboxState } from './sandbox-networks.js';
import type { AgentInterface } from './vmi/guest-agent.js';
import { type KubeletPod, uidOf } from './pod.js';
import type { Vmi } from './vmi/virtual-machine-instance.js';
import { WiredGuests } from './wired-guests.js';

/** The interface of the pod network, which guests do not use here. */
const POD_INTERFACE = 'eth0';

interface HeldAddress {
  readonly interface: string;
  /** With prefix length. */
  readonly address: string;
}

/** Real networks, attached by Multus and the CNI plugins. */
export class WiredNetworks implements SandboxNetworks, GuestNetworks {
  readonly #wire: Wire;
  readonly #networks: PodNetworks;
  /** UIDs of pods whose sandbox was stopped and will not be replaced. */
  readonly #ended = new Set<string>();
  /** Addresses of guests that do not run in their launcher, by UID of the pod. */
  readonly #heldByGuests = new Map<string, readonly HeldAddress[]>();

  readonly #guests: WiredGuests;
  readonly #answers = new ArpAnswers((launcher, script) => this.#runIn(launcher, script));

  constructor(wire: Wire, networks: PodNetworks) {
    this.#guests = new WiredGuests(wire, networks);
    this.#wire = wire;
    this.#networks = networks;
  }

  stateOf(pod: KubeletPod): SandboxState {
    const uid = uidOf(pod);
    if (this.#ended.has(uid)) return { state: 'ended' };
    const attached = this.#networks.find(uid);
    if (!attached) return NO_SANDBOX;
    const ips = (attached.result.ips ?? []).map(({ address }) => address.replace(/\/.*/, ''));
    return { state: 'up', ips };
  }

  async attach(pod: KubeletPod): Promise<void> {
    await this.#networks.attach(pod);
  }

  async update(pod: KubeletPod): Promise<void> {
    await this.#networks.hotplug(pod);
  }

  async detach(pod: KubeletPod): Promise<void> {
    await this.#guests.end(pod);
    await this.#networks.detach(pod);
    this.#ended.add(uidOf(pod));
  }

  forget(pod: KubeletPod): void {
    this.#ended.delete(uidOf(pod));
    this.#heldByGuests.delete(uidOf(pod));
  }

  async followGuest(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void> {
    await this.#guests.follow(vmi, launcher);
    await this.#answers.follow(vmi, launcher);
  }

  interfacesOfGuest(vmi: Vmi): Promise<readonly AgentInterface[] | undefined> {
    return this.#guests.interfacesOf(vmi);
  }

  async detachGuest(launcher: KubeletPod): Promise<void> {
    const location = this.#locationOf(launcher);
    if (!location) return;
    const found = (await this.#wire.interfaces(location)).filter(({ name }) => name !== POD_INTERFACE);
    const held = found.flatMap(({ name, addresses }) =>
      addresses.filter(({ linkLocal }) => !linkLocal).map(({ address }) => ({ interface: name, address })),
    );
    if (held.length > 0) this.#heldByGuests.set(uidOf(launcher), held); // otherwise it has left already
    for (const { name } of found) await this.#wire.flushAddresses(location, name);
    await this.#guests.prepare(launcher);
  }

  async attachGuest(launcher: KubeletPod): Promise<void> {
    const location = this.#locationOf(launcher);
    if (!location) return;
    const arrived = this.#heldByGuests.get(uidOf(launcher)) ?? [];
    for (const { name, mac } of await this.#wire.interfaces(location)) {
      // as QEMU does: it ends a hold
      if (arrived.some((each) => each.interface === name))
        await this.#wire.sendFrames(location, name, [ethernet(reverseArp(mac))]);
    }
    for (const { interface: name, address } of arrived) {
      await this.#wire.addAddress(location, name, address, true);
      await this.#wire.announce(location, name, address.replace(/\/.*/, ''));
    }
    this.#heldByGuests.delete(uidOf(launcher));
    await this.#guests.move(controllingVmi(launcher)?.uid ?? '', launcher);
  }

  async #runIn(pod: KubeletPod, script: string): Promise<void> {
    const location = this.#locationOf(pod);
    if (!location) return;
    const { exitCode, stderr } = await this.#wire.run(location, { command: '/bin/sh', args: ['-ec', script] });
    if (exitCode !== 0) throw new Error(`${script} in ${location}: ${stderr}`);
  }

  #locationOf(pod: KubeletPod): WireLocation | undefined {
    return this.#networks.find(uidOf(pod))?.location;
  }
}
