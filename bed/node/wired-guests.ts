import { podInterfaceName } from '../../api/pod.js';
import type { PodNetworks } from '../network/pod-networks.js';
import type { Wire, WireLocation } from '../network/wire.js';
import type { AgentInterface } from './vmi/guest-agent.js';
import { type KubeletPod, uidOf } from './pod.js';
import { hasEnded, type GuestInterface, type Vmi } from './vmi/virtual-machine-instance.js';

interface Nic {
  /** The interface in the guest. */
  readonly name: string;
  readonly mac: string;
  /** The interface in the launcher. */
  readonly podInterface: string;
}

interface Guest {
  /** UID of the launcher in which it runs. */
  launcher: string;
  /** By name of the network in the VMI. */
  readonly nics: Map<string, Nic>;
}

/** The namespace of a guest with a kernel of its own. */
export function guestLocation(vmi: { metadata: { uid?: string } }): WireLocation {
  return `guest/${vmi.metadata.uid ?? ''}`;
}

/**
 * Guests with kernels of their own: those of VMs with an interface that the plugin left down in the launcher
 * (`disableContainerInterface`). Only this binding is simulated completely, because each guest costs two namespaces.
 */
export class WiredGuests {
  readonly #wire: Wire;
  readonly #networks: PodNetworks;
  /** By UID of the VMI. */
  readonly #guests = new Map<string, Guest>();

  constructor(wire: Wire, networks: PodNetworks) {
    this.#wire = wire;
    this.#networks = networks;
  }

  /** Connects interfaces that the VMI reports in the guest, and removes others. */
  async follow(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void> {
    const uid = vmi.metadata.uid ?? '';
    if (hasEnded(vmi)) return this.#remove(uid);
    if (!launcher || vmi.status?.phase !== 'Running') return;
    const inGuest = (vmi.status.interfaces ?? []).filter(({ infoSource }) => infoSource?.includes('domain'));
    await this.#unplugOthers(uid, inGuest);
    const down = await this.#downIn(launcher);
    for (const entry of inGuest) {
      if (down.includes(podInterfaceName(entry.name ?? ''))) await this.#plug(vmi, launcher, entry);
    }
  }

  /** Prepares the interfaces of a migration's target that the plugin left down. */
  async prepare(launcher: KubeletPod): Promise<void> {
    for (const name of await this.#downIn(launcher)) await this.#wire.prepareLauncher(this.#podOf(launcher), name);
  }

  /** Moves a guest to the launcher in which it now runs. */
  async move(vmiUid: string, launcher: KubeletPod): Promise<void> {
    const guest = this.#guests.get(vmiUid);
    if (!guest) return;
    for (const { name, mac, podInterface } of guest.nics.values()) {
      await this.#wire.plugGuest({ guest: vmiUid, pod: this.#podOf(launcher), interface: podInterface, name, mac });
    }
    guest.launcher = uidOf(launcher);
  }

  /** Ends the guest that runs in this launcher. */
  async end(launcher: KubeletPod): Promise<void> {
    for (const [uid, guest] of this.#guests) if (guest.launcher === uidOf(launcher)) await this.#remove(uid);
  }

  /** The report of the guest agent; undefined for a guest without a kernel of its own. */
  async interfacesOf(vmi: Vmi): Promise<AgentInterface[] | undefined> {
    if (!this.#guests.has(vmi.metadata.uid ?? '')) return undefined;
    return (await this.#wire.interfaces(guestLocation(vmi))).map(({ name, mac, addresses }) => {
      return { name, mac, ips: addresses.map(({ address }) => address.replace(/\/.*/, '')) };
    });
  }

  async #plug(vmi: Vmi, launcher: KubeletPod, { name: network = '', mac = '' }: GuestInterface): Promise<void> {
    const uid = vmi.metadata.uid ?? '';
    let guest = this.#guests.get(uid);
    if (!guest) {
      await this.#wire.addGuest(uid);
      guest = { launcher: uidOf(launcher), nics: new Map() };
      this.#guests.set(uid, guest);
    }
    const interfaces = vmi.spec?.domain?.devices?.interfaces ?? [];
    const nic = {
      name: `eth${interfaces.findIndex(({ name }) => name === network)}`,
      mac,
      podInterface: podInterfaceName(network),
    };
    const pod = this.#podOf(launcher);
    await this.#wire.prepareLauncher(pod, nic.podInterface);
    await this.#wire.plugGuest({ guest: uid, pod, interface: nic.podInterface, name: nic.name, mac });
    guest.nics.set(network, nic);
  }

  async #unplugOthers(uid: string, inGuest: readonly GuestInterface[]): Promise<void> {
    const nics = this.#guests.get(uid)?.nics ?? new Map<string, Nic>();
    for (const [network, { name }] of nics) {
      if (inGuest.some((entry) => entry.name === network)) continue;
      await this.#wire.unplugGuest(uid, name);
      nics.delete(network);
    }
  }

  async #remove(uid: string): Promise<void> {
    if (this.#guests.delete(uid)) await this.#wire.removeGuest(uid);
  }

  async #downIn(launcher: KubeletPod): Promise<string[]> {
    const pod = this.#networks.find(uidOf(launcher));
    const found = pod ? await this.#wire.interfaces(pod.location) : [];
    return found.flatMap(({ name, up }) => (up ? [] : [name]));
  }

  #podOf(launcher: KubeletPod): string {
    return this.#networks.find(uidOf(launcher))?.containerId ?? '';
  }
}
