import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { cachedFolder } from '../build/cache.js';
import { unpackPackages } from '../build/debian-packages.js';
import type { LastingCommand, RunningCommand, Wire, WireLocation } from './wire.js';
import { until, untilValue } from '../processes/wait.js';

const PACKAGES = ['busybox', 'isc-dhcp-client', 'dhcpcd-base', 'wide-dhcpv6-client', 'libfl2', 'ndisc6'] as const;
/** Part of the cached folder's name: other packages make another folder. */
const CONTENT = 'dhcp-clients-1';
const SCRIPTS = join(import.meta.dirname, 'dhcp-clients');
const NETWORKD = '/lib/systemd/systemd-networkd';

export type DhcpClientName = 'udhcpc' | 'dhclient' | 'dhcpcd' | 'systemd-networkd';
export type Dhcpv6ClientName = 'dhclient -6' | 'dhcpcd -6' | 'dhcp6c';

/** The options of a lease by name, as a client reports them: `dns`, `search`, `mtu`, `ntp`, `seconds`. */
export type Lease = Readonly<Record<string, string>>;

/** A DHCP client that runs in a guest. */
export class RunningClient {
  readonly command: RunningCommand;

  constructor(command: RunningCommand) {
    this.command = command;
  }

  /** All leases that it has reported so far, the first one first. */
  leases(): Lease[] {
    const lines = this.command.output.stdout.split('\n').filter((line) => line.startsWith('lease '));
    return lines.map((line) => {
      const pairs = [...line.matchAll(/(\w+)=(.*?)(?= \w+=|$)/g)];
      return Object.fromEntries(pairs.map(([, name = '', value = '']) => [name, value.replaceAll(',', ' ').trim()]));
    });
  }

  /** Waits for the next lease after `known` ones. */
  async waitForLease(known = 0): Promise<Lease> {
    const leases = await untilValue(
      'a lease',
      () => ({ leases: this.leases(), output: this.command.output }),
      (seen) => seen.leases.length > known,
    );
    return leases.leases.at(-1)!;
  }

  /** Waits until udhcpc has asked three times. @returns true if it got no lease */
  async isIgnored(): Promise<boolean> {
    await untilValue(
      'three discovers',
      () => this.command.output.stderr,
      (log) => log.split('broadcasting discover').length > 3,
    );
    return this.leases().length === 0;
  }
}

/** Real DHCP clients of Debian or Ubuntu. Nothing is installed. */
export class DhcpClients {
  readonly #root: string;

  private constructor(root: string) {
    this.#root = root;
  }

  /**
   * The clients from this machine's package archive, which the first use downloads into the cache.
   * @returns the reason if there are none
   */
  static async find(): Promise<DhcpClients | string> {
    try {
      return new DhcpClients(await cachedFolder(CONTENT, (scratch) => unpackPackages(PACKAGES, scratch)));
    } catch (error) {
      return `DHCP clients were not downloaded: ${String(error)}`;
    }
  }

  /** Whether this machine has the client. systemd-networkd cannot be run from an unpacked archive. */
  has(name: DhcpClientName): boolean {
    return name !== 'systemd-networkd' || existsSync(NETWORKD);
  }

  /** Starts a client on an interface of a guest, which it sets up. dhcp6c reports no lease, only the address shows it. */
  async start(
    wire: Wire,
    guest: WireLocation,
    name: DhcpClientName | Dhcpv6ClientName,
    interfaceName = 'eth0',
  ): Promise<RunningClient> {
    return new RunningClient(await wire.start(guest, this.#command(this.#scriptOf(name, interfaceName))));
  }

  /** Starts dhclient with the lease of an address from an earlier boot, which it asks for again. */
  async startWithLease(
    wire: Wire,
    guest: WireLocation,
    address: string,
    interfaceName = 'eth0',
  ): Promise<RunningClient> {
    const lease = FORMER_LEASE.replace('DEVICE', interfaceName).replace('ADDRESS', address);
    const script = `mkdir /var/lib/dhcp\nprintf '%s\\n' '${lease}' > /var/lib/dhcp/dhclient.leases\n`;
    const start = this.#scriptOf('dhclient', interfaceName).replace('mkdir', 'mkdir -p');
    return new RunningClient(await wire.start(guest, this.#command(script + start)));
  }

  /** Starts a DHCP server on a host, which has `address` and gives only `lease`. */
  startServer(
    wire: Wire,
    host: WireLocation,
    { address, lease }: { address: string; lease: string },
  ): Promise<RunningCommand> {
    const config = `interface eth0\nstart ${lease}\nend ${lease}\nlease_file /run/leases\npidfile /run/pid`;
    const script = `touch /run/leases\nprintf '%s\\n' '${config}' > /run/udhcpd.conf
      exec $ROOT/bin/busybox udhcpd -f -I ${address} /run/udhcpd.conf`;
    return wire.start(host, this.#command(script));
  }

  /** Sends router solicitations, one a second. @returns what rdisc6 prints about the first answer */
  async solicitRouter(wire: Wire, guest: WireLocation, interfaceName = 'eth0', tries = 30): Promise<string> {
    await until(`${guest} to have a link-local address`, async () => {
      const device = (await wire.interfaces(guest)).find(({ name }) => name === interfaceName);
      return device?.addresses.some(({ linkLocal, tentative }) => linkLocal && !tentative);
    });
    const args = ['--single', '--retry', String(tries), '--wait', '1000', interfaceName];
    const { stdout, stderr } = await wire.run(guest, { command: join(this.#root, 'bin', 'rdisc6'), args });
    return stdout + stderr;
  }

  #command(script: string): LastingCommand {
    const libraries = ['x86_64', 'aarch64'].map((machine) => join(this.#root, 'usr', 'lib', `${machine}-linux-gnu`));
    const env = {
      PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
      LD_LIBRARY_PATH: libraries.join(':'),
      ROOT: this.#root,
      SCRIPTS,
      SYSTEMD_LOG_TARGET: 'console',
    };
    return { command: '/bin/sh', args: ['-ec', script], env, mounts: 'private' };
  }

  #scriptOf(name: DhcpClientName | Dhcpv6ClientName, device: string): string {
    const up = `ip link set ${device} up\n`;
    switch (name) {
      case 'udhcpc':
        return `${up}exec $ROOT/bin/busybox udhcpc -f -i ${device} -s $SCRIPTS/udhcpc.sh -t 20 -T 1 \\
          -O staticroutes -O search -O mtu -O ntpsrv`;
      case 'dhclient':
        return `${up}mkdir /var/lib/dhcp
          printf '%s\\n' '${DHCLIENT_CONFIG}' > /run/dhclient.conf
          exec $ROOT/sbin/dhclient -4 -d -cf /run/dhclient.conf -sf $SCRIPTS/dhclient.sh ${device}`;
      case 'dhclient -6':
        return `${up}mkdir /var/lib/dhcp
          exec $ROOT/sbin/dhclient -6 -d -cf /dev/null -sf $SCRIPTS/dhclient.sh ${device}`;
      case 'dhcpcd':
      case 'dhcpcd -6':
        return `mkdir -p /var/lib/dhcpcd
          printf '%s\\n' '${DHCPCD_CONFIG}' > /run/dhcpcd.conf
          exec $ROOT/usr/sbin/dhcpcd -B ${name === 'dhcpcd' ? '-4' : '-6'} -f /run/dhcpcd.conf \\
            -c $SCRIPTS/dhcpcd.sh ${device}`;
      case 'dhcp6c':
        return `${up}mkdir -p /var/lib/dhcpv6
          printf '%s\\n' '${DHCP6C_CONFIG.replaceAll('DEVICE', device)}' > /run/dhcp6c.conf
          exec $ROOT/usr/sbin/dhcp6c -f -d -c /run/dhcp6c.conf ${device}`;
      case 'systemd-networkd':
        return networkdScript(device);
    }
  }
}

const DHCLIENT_CONFIG = `option classless-routes code 121 = array of unsigned integer 8;
request subnet-mask, routers, domain-name-servers, domain-search, interface-mtu, ntp-servers, classless-routes;
initial-interval 1;
reboot 1;`;

const FORMER_LEASE = `lease {
  interface "DEVICE";
  fixed-address ADDRESS;
  option subnet-mask 255.255.255.0;
  renew 1 2035/01/01 00:00:00;
  rebind 1 2035/01/01 00:00:00;
  expire 1 2035/01/01 00:00:00;
}`;

const DHCPCD_CONFIG = `noarp
option classless_static_routes, domain_name_servers, domain_search, interface_mtu, ntp_servers
option dhcp6_name_servers, dhcp6_domain_search`;

const DHCP6C_CONFIG = `interface DEVICE { send ia-na 1; };
id-assoc na 1 { };`;

/** networkd has no script for leases: it writes them into a file, which is printed when it changes. */
function networkdScript(device: string): string {
  return `
    mkdir -p /run/systemd/network /run/systemd/netif/links /run/systemd/netif/leases /run/systemd/netif/lldp
    chown -R systemd-network /run/systemd/netif
    printf '%s\\n' '[Match]' "MACAddress=$(cat /sys/class/net/${device}/address)" '[Network]' 'DHCP=yes' \\
      'IPv6AcceptRA=yes' '[DHCPv4]' 'UseDomains=yes' 'UseMTU=yes' > /run/systemd/network/10-guest.network
    ${NETWORKD} &
    trap 'kill $!' TERM
    file=/run/systemd/netif/leases/$(cat /sys/class/net/${device}/ifindex)
    before=
    while kill -0 $! 2>/dev/null; do
      if [ -s "$file" ] && [ "$(cat "$file")" != "$before" ]; then
        before=$(cat "$file")
        value() { sed -n "s/^$1=//p" "$file"; }
        echo "lease ip=$(value ADDRESS) dns=$(value DNS) search=$(value DOMAIN_SEARCH_LIST) mtu=$(value MTU)" \\
          "ntp=$(value NTP) seconds=$(value LIFETIME)"
      fi
      sleep 0.1
    done`;
}
