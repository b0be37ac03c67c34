import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { cachedFolder } from '../build/cache.js';
import { unpackPackages } from '../build/debian-packages.js';
import { until } from '../processes/wait.js';
import type { RunningCommand, Wire, WireLocation } from './wire.js';

/** Of Debian 12: programs, and libraries that a machine may lack. */
const PACKAGES = [
  ...['kea-dhcp4-server', 'kea-dhcp6-server', 'kea-common', 'liblog4cplus-2.0.5', 'libmariadb3', 'libpq5'],
  ...['dnsmasq-base', 'libnetfilter-conntrack3', 'libnfnetlink0', 'libnftables1', 'libnftnl11'],
] as const;

export type KeaProgram = 'kea-dhcp4' | 'kea-dhcp6';

/** The DHCP servers Kea and dnsmasq, to compare with. Nothing is installed. */
export class DhcpServers {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /**
   * The servers from this machine's package archive, which the first use downloads into the cache.
   * @returns the reason if there are none
   */
  static async find(): Promise<DhcpServers | string> {
    try {
      return new DhcpServers(await cachedFolder('dhcp-servers-1', (scratch) => unpackPackages(PACKAGES, scratch)));
    } catch (error) {
      return `Kea and dnsmasq, which are those of Debian 12, were not downloaded: ${String(error)}`;
    }
  }

  /** Starts Kea on a host with addresses. @param folder receives its configuration */
  async startKea(
    wire: Wire,
    host: WireLocation,
    { program, config, folder }: { program: KeaProgram; config: object; folder: string },
  ): Promise<RunningCommand> {
    const file = join(folder, `${program}.json`);
    await writeFile(file, JSON.stringify(config));
    await untilReady(wire, host);
    return wire.start(host, {
      command: join(this.#root, 'usr/sbin', program),
      args: ['-c', file],
      env: { ...this.#environment(), KEA_PIDFILE_DIR: '/run', KEA_LOCKFILE_DIR: '/run' },
      mounts: 'private',
    });
  }

  /** Starts dnsmasq as a DHCP server on eth0 of a host with addresses. */
  async startDnsmasq(wire: Wire, host: WireLocation, args: readonly string[]): Promise<RunningCommand> {
    await untilReady(wire, host);
    return wire.start(host, {
      command: join(this.#root, 'usr/sbin/dnsmasq'),
      args: [...DNSMASQ_ARGS, ...args],
      env: this.#environment(),
      mounts: 'private',
    });
  }

  #environment(): Record<string, string> {
    const libraries = ['x86_64', 'aarch64'].map((machine) => join(this.#root, 'usr/lib', `${machine}-linux-gnu`));
    return { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LD_LIBRARY_PATH: libraries.join(':') };
  }
}

const DNSMASQ_ARGS = [
  ...['--no-daemon', '--conf-file=/dev/null', '--port=0', '--interface=eth0', '--user=root', '--group=root'],
  ...['--no-ping', '--dhcp-authoritative', '--pid-file=/run/dnsmasq.pid'],
];

/** Servers open no socket for DHCPv6 while the kernel checks their addresses. */
async function untilReady(wire: Wire, host: WireLocation): Promise<void> {
  await until(`${host} to have its addresses`, async () => {
    const addresses = (await wire.interfaces(host)).flatMap((each) => each.addresses);
    return addresses.some(({ linkLocal }) => linkLocal) && !addresses.some(({ tentative }) => tentative);
  });
}
