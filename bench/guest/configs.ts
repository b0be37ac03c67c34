/** The guests of `guest/packets/guests_load.go`, as servers are told about them. */
export const SERVER = { ipv4: '10.80.0.1', prefix4: '10.80.0.0/16', prefix6: 'fd00:80::/64' };
/** Where DHCPv6 messages of all guests come from. */
export const ALL_GUESTS = 'fe80::fe';

const hex = (byte: number) => byte.toString(16).padStart(2, '0');

export const loadMac = (index: number) => `02:fe:00:00:${hex(index >> 8)}:${hex(index & 0xff)}`;
export const loadIpv4 = (index: number) => `10.80.${String(1 + (index >> 8))}.${String(index & 0xff)}`;
const loadIpv6 = (index: number) => `fd00:80::1:${index.toString(16)}`;
/** DUID-LL. */
const loadDuid = (index: number) => `00:03:00:01:${loadMac(index)}`;

const TIMES = { 'renew-timer': 300, 'rebind-timer': 600, 'valid-lifetime': 86_400 };
const SERVER_ID = { type: 'LL', htype: 1, identifier: '020000000002', persist: false };
/** A line for each lease would slow Kea down. */
const loggers = (name: string) => [{ name, severity: 'WARN', output_options: [{ output: 'stderr' }] }];
const SHARED = {
  'interfaces-config': { interfaces: ['eth0'] },
  'lease-database': { type: 'memfile', persist: false },
  ...TIMES,
};

/** A table for holdfast-packets. */
export function holdfastEntries(count: number): object[] {
  return Array.from({ length: count }, (_, index) => ({
    mac: loadMac(index),
    ipv4: { address: loadIpv4(index), prefix: 16, router: SERVER.ipv4 },
    ipv6: { address: loadIpv6(index) },
    options: 'o',
  }));
}

/** Reservations, as claims are. Leases are not written to a disk. */
export function keaConfigs(count: number): { 'kea-dhcp4': object; 'kea-dhcp6': object } {
  const all = Array.from({ length: count }, (_, index) => index);
  const reservations4 = all.map((index) => ({ 'hw-address': loadMac(index), 'ip-address': loadIpv4(index) }));
  const reservations6 = all.map((index) => ({ duid: loadDuid(index), 'ip-addresses': [loadIpv6(index)] }));
  const options4 = [
    { name: 'routers', data: SERVER.ipv4 },
    { name: 'domain-name-servers', data: '10.80.0.53' },
    { name: 'interface-mtu', data: '1400' },
  ];
  const subnet4 = { subnet: SERVER.prefix4, reservations: reservations4, 'option-data': options4 };
  const options6 = [{ name: 'dns-servers', data: 'fd00:80::53' }];
  const subnet6 = { subnet: SERVER.prefix6, interface: 'eth0', reservations: reservations6, 'option-data': options6 };
  return {
    'kea-dhcp4': {
      Dhcp4: {
        ...SHARED,
        'calculate-tee-times': false,
        loggers: loggers('kea-dhcp4'),
        'host-reservation-identifiers': ['hw-address'],
        subnet4: [subnet4],
      },
    },
    'kea-dhcp6': {
      Dhcp6: {
        ...SHARED,
        'preferred-lifetime': 86_400,
        'server-id': SERVER_ID,
        loggers: loggers('kea-dhcp6'),
        'host-reservation-identifiers': ['duid'],
        subnet6: [subnet6],
      },
    },
  };
}

/** The file of `--dhcp-hostsfile`. dnsmasq tells guests of DHCPv6 apart by their DUID: their messages have one source. */
export function dnsmasqHosts(count: number): string {
  return Array.from(
    { length: count },
    (_, index) => `${loadMac(index)},${loadIpv4(index)}\nid:${loadDuid(index)},[${loadIpv6(index)}]\n`,
  ).join('');
}

export const DNSMASQ_LOAD_ARGS = [
  ...['--leasefile-ro', '--dhcp-lease-max=100000', '--quiet-dhcp', '--quiet-dhcp6', '--quiet-ra'],
  ...['--dhcp-range=10.80.0.0,static,255.255.0.0,24h', '--dhcp-range=fd00:80::,static,64,24h'],
  ...[`--dhcp-option=option:router,${SERVER.ipv4}`, '--dhcp-option=option:dns-server,10.80.0.53'],
  ...['--dhcp-option=option:mtu,1400', '--dhcp-option=option6:dns-server,[fd00:80::53]'],
];

/** Commands of `ip -batch`: a kernel with many guests would forget their MAC addresses, and ask for them again. */
export function neighbourCommands(count: number): string {
  const line = (address: string, mac: string) => `neigh replace ${address} lladdr ${mac} dev eth0 nud permanent\n`;
  const all = Array.from({ length: count }, (_, index) => line(loadIpv4(index), loadMac(index)));
  return line(ALL_GUESTS, '02:fe:ff:ff:ff:fe') + all.join('');
}
