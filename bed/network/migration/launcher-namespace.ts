import { ethernet, reverseArp } from '../frames.js';
import type { InterfaceState } from '../wire-events.js';
import type { WireLocation, Wire } from '../wire.js';

/** The launcher's interface on the network. */
export const INTERFACE = 'podnet';
export const GUEST = { ipv4: '192.168.50.7', ipv6: 'fd00:50::7' } as const;
export const GUEST_ADDRESSES = [`${GUEST.ipv4}/24`, `${GUEST.ipv6}/64`] as const;
const PREPARED_MAC = '02:00:00:00:99:99';

/**
 * The network namespace of a launcher with bridge binding. No guest runs: while it would run here, the kernel of the pod has its
 * addresses and MAC address, and answers as the guest's kernel would.
 */
export class LauncherNamespace {
  readonly location: WireLocation;
  readonly #wire: Wire;

  constructor(wire: Wire, place: WireLocation) {
    this.#wire = wire;
    this.location = place;
  }

  async state(): Promise<InterfaceState> {
    return (await this.#wire.interfaces(this.location)).find(({ name }) => name === INTERFACE)!;
  }

  /**
   * Prepares the interface as virt-handler does before the guest starts: it becomes a port of a bridge in the pod, without
   * addresses, with another MAC address, and up.
   */
  async prepare(): Promise<void> {
    await this.stopGuest();
    await this.#wire.setMac(this.location, INTERFACE, PREPARED_MAC);
    await this.#setUp();
  }

  /** Removes the guest's addresses, so that the launcher no longer answers. */
  async stopGuest(): Promise<void> {
    await this.#set({ [`ipv6/conf/${INTERFACE}/disable_ipv6`]: 1 });
    await this.#wire.flushAddresses(this.location, INTERFACE);
  }

  /**
   * Gives the launcher the guest's addresses, regardless of sysctls of the NAD, and announces them, as virtio drivers do after a
   * migration.
   * @param mac of a guest that comes from elsewhere, which QEMU announces first
   */
  async runGuest(mac?: string): Promise<void> {
    if (mac) await this.#wire.setMac(this.location, INTERFACE, mac);
    await this.#set({
      [`ipv4/conf/${INTERFACE}/arp_ignore`]: 0,
      [`ipv6/conf/${INTERFACE}/accept_dad`]: 0, // a guest that migrates keeps its addresses without detection of duplicates
      [`ipv6/conf/${INTERFACE}/disable_ipv6`]: 0,
    });
    await this.#setUp();
    const { addresses } = await this.state();
    for (const address of GUEST_ADDRESSES) {
      if (!addresses.some((one) => one.address === address))
        await this.#wire.addAddress(this.location, INTERFACE, address);
    }
    if (mac) await this.#wire.sendFrames(this.location, INTERFACE, [ethernet(reverseArp(mac))]);
    for (const ip of Object.values(GUEST)) await this.#wire.announce(this.location, INTERFACE, ip);
  }

  /** Number of echo requests that the kernel of the pod has received. */
  async echoes(): Promise<{ ipv4: number; ipv6: number }> {
    const [names = '', counts = ''] = (await this.#read('/proc/net/snmp')).filter((line) => line.startsWith('Icmp:'));
    const ipv6 = (await this.#read('/proc/net/snmp6')).find((line) => line.startsWith('Icmp6InEchos')) ?? '';
    return { ipv4: Number(counts.split(' ')[names.split(' ').indexOf('InEchos')]), ipv6: Number(ipv6.split(/\s+/)[1]) };
  }

  /** Without IPAM, the plugin may have left the interface down. */
  async #setUp(): Promise<void> {
    await this.#run(`ip link set ${INTERFACE} up`);
  }

  async #read(file: string): Promise<string[]> {
    return (await this.#run('cat "$0"', file)).split('\n');
  }

  async #set(values: Readonly<Record<string, number>>): Promise<void> {
    await this.#run(
      Object.entries(values)
        .map(([key, value]) => `echo ${value} > /proc/sys/net/${key}`)
        .join('\n'),
    );
  }

  async #run(script: string, ...args: string[]): Promise<string> {
    const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' };
    const { exitCode, stdout, stderr } = await this.#wire.run(this.location, {
      command: '/bin/sh',
      args: ['-ec', script, ...args],
      env,
    });
    if (exitCode !== 0) throw new Error(`${script} in ${this.location}: ${stderr}`);
    return stdout;
  }
}
