import type { GuestBootFile, GuestDhcpOption, GuestOptions } from '../../api/address-pool.js';

interface GuestCase {
  name: string;
  given: GuestOptions;
  /** Parts of the message; absent if the spec is accepted. */
  expect?: string[];
}

const withOptions = (...options: [number, GuestDhcpOption['type'], string][]): GuestOptions => ({
  attachment: 'blue',
  dhcp: { options: options.map(([code, type, value]) => ({ code, type, value })) },
});
const withBoot = (...boot: GuestBootFile[]): GuestOptions => ({ attachment: 'blue', dhcp: { boot } });
const route = (destination: string, gateway: string) => ({ routes: [{ destination, gateway }] });

/** Valid and invalid `spec.guest` of a pool with the subnets 10.1.0.0/24 and fd00:1::/64, and the messages of the API server. */
export const GUEST_CASES: readonly GuestCase[] = [
  { name: 'guests without any setting', given: {} },
  {
    name: 'all settings of guests',
    given: {
      attachment: 'blue.1',
      dhcp: { renewSeconds: 10, rebindSeconds: 20, leaseSeconds: 600 },
      probe: true,
      networkData: { default: true },
      dns: { nameservers: ['10.9.0.53', 'fd00:9::53'], search: ['example.com', '_msdcs.corp.Example'] },
      ntp: ['10.9.0.123'],
      routes: [
        { destination: '10.9.0.0/16', gateway: '10.1.0.1' },
        { destination: 'fd00:9::/32', gateway: 'fd00:1::1' },
      ],
      mtu: 1280,
    },
  },
  { name: 'DHCP with default times', given: { attachment: 'blue', dhcp: {} } },
  { name: 'not DHCP without an attachment', given: { dhcp: {} }, expect: ['spec.guest.attachment', 'is absent'] },
  { name: 'no probes without responders', given: { probe: false } },
  { name: 'not probes without responders', given: { probe: true }, expect: ['spec.guest.probe', 'set dhcp too'] },
  {
    name: 'not an attachment of a namespace',
    given: { attachment: 'vms/blue' },
    expect: ['"vms/blue" is not a name of a NetworkAttachmentDefinition'],
  },
  {
    name: 'not a rebinding before the renewal',
    given: { attachment: 'blue', dhcp: { renewSeconds: 600 } },
    expect: ['spec.guest.dhcp.rebindSeconds', 'not greater than renewSeconds'],
  },
  {
    name: 'not a lease that ends before the rebinding',
    given: { attachment: 'blue', dhcp: { rebindSeconds: 86_400 } },
    expect: ['spec.guest.dhcp.leaseSeconds', 'not greater than rebindSeconds'],
  },
  {
    name: 'not a renewal each second',
    given: { attachment: 'blue', dhcp: { renewSeconds: 1 } },
    expect: ['spec.guest.dhcp.renewSeconds', 'greater than or equal to 10'],
  },
  {
    name: 'options of DHCP of each type',
    given: withOptions(
      [43, 'hex', '0104'],
      [66, 'text', 'boot.example'],
      [150, 'addresses', '10.1.0.8,10.1.0.9'],
      [23, 'uint8', '64'],
      [24, 'uint32', '4294967295'],
    ),
  },
  {
    name: 'not an option of DHCP that responders compute',
    given: withOptions([54, 'hex', '0a010001']),
    expect: ['spec.guest.dhcp.options[0].code', 'responders compute this option'],
  },
  {
    name: 'not two options of DHCP with one code',
    given: withOptions([66, 'text', 'a'], [66, 'text', 'b']),
    expect: ['spec.guest.dhcp.options[1]', 'Duplicate value'],
  },
  {
    name: 'not an IPv6 address in an option of DHCPv4',
    given: withOptions([150, 'addresses', '10.1.0.8,fd00:1::1']),
    expect: ['spec.guest.dhcp.options[0].value', 'are not IPv4 addresses'],
  },
  {
    name: 'not half a byte in an option of DHCP',
    given: withOptions([43, 'hex', '010']),
    expect: ['spec.guest.dhcp.options[0].value', 'is not hexadecimal'],
  },
  {
    name: 'not a number that is too large for its type in an option of DHCP',
    given: withOptions([23, 'uint8', '256']),
    expect: ['"256" is not a number of the type uint8'],
  },
  {
    name: 'not a line break in an option of DHCP',
    given: withOptions([66, 'text', 'a\nb']),
    expect: ['spec.guest.dhcp.options[0].value', 'printable ASCII'],
  },
  {
    name: 'not more text in options of DHCP than fits into a message',
    given: withOptions([66, 'text', 'a'.repeat(255)], [67, 'text', 'a'.repeat(255)], [64, 'text', 'aaa']),
    expect: ['spec.guest.dhcp.options', 'more than 512 characters'],
  },
  {
    name: 'options of DHCPv6',
    given: { attachment: 'blue', dhcp: { optionsV6: [{ code: 22, type: 'addresses', value: 'fd00:1::1,fd00:1::2' }] } },
  },
  {
    name: 'not an option of DHCPv6 that responders compute',
    given: { attachment: 'blue', dhcp: { optionsV6: [{ code: 23, type: 'hex', value: '00' }] } },
    expect: ['spec.guest.dhcp.optionsV6[0].code', 'responders compute this option'],
  },
  {
    name: 'not an IPv4 address in an option of DHCPv6',
    given: { attachment: 'blue', dhcp: { optionsV6: [{ code: 22, type: 'addresses', value: '10.1.0.1' }] } },
    expect: ['spec.guest.dhcp.optionsV6[0].value', 'are not IPv6 addresses'],
  },
  {
    name: 'boot files',
    given: withBoot(
      { ipxe: true, file: 'http://boot.example/boot.ipxe' },
      { architectures: [7, 9], servers: ['10.1.0.8', 'fd00:1::8'], file: 'boot.efi', parameters: ['a b'] },
    ),
  },
  {
    name: 'not a boot file without a server',
    given: withBoot({ file: 'boot.efi' }),
    expect: ['spec.guest.dhcp.boot[0].servers', 'name the TFTP server that has boot.efi'],
  },
  {
    name: 'not a space in a boot file',
    given: withBoot({ file: 'http://a b' }),
    expect: ['spec.guest.dhcp.boot[0].file', 'without spaces'],
  },
  {
    name: 'not a name as the server of a boot file',
    given: withBoot({ file: 'boot.efi', servers: ['tftp.example'] }),
    expect: ['spec.guest.dhcp.boot[0].servers[0]', '"tftp.example" is not an IP address'],
  },
  {
    name: 'not a group as the server of a boot file',
    given: withBoot({ file: 'boot.efi', servers: ['224.0.0.1'] }),
    expect: ['spec.guest.dhcp.boot[0].servers[0]', '224.0.0.1 is not the address of a host'],
  },
  {
    name: 'not two servers of one family for a boot file',
    given: withBoot({ file: 'boot.efi', servers: ['10.1.0.8', '10.1.0.9'] }),
    expect: ['spec.guest.dhcp.boot[0].servers', 'two addresses of one family'],
  },
  {
    name: 'not an architecture that does not exist',
    given: withBoot({ file: 'http://a', architectures: [65_536] }),
    expect: ['spec.guest.dhcp.boot[0].architectures[0]', 'less than or equal to 65535'],
  },
  {
    name: 'not a line break in a parameter of a boot file',
    given: withBoot({ file: 'http://a', parameters: ['a\nb'] }),
    expect: ['spec.guest.dhcp.boot[0].parameters[0]', 'printable ASCII'],
  },
  {
    name: 'not a name as a name server',
    given: { dns: { nameservers: ['ns.example'] } },
    expect: ['spec.guest.dns.nameservers[0]', '"ns.example" is not an IP address'],
  },
  {
    name: 'not a dot at the end of a search domain',
    given: { dns: { search: ['a.'] } },
    expect: ['"a." is not a domain'],
  },
  {
    name: 'not a line break in a search domain',
    given: { dns: { search: ['a\nb'] } },
    expect: ['spec.guest.dns.search[0]'],
  },
  {
    name: 'not search domains that are longer than a DHCP option',
    given: { dns: { search: ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(50)) } },
    expect: ['spec.guest.dns.search', '255 bytes of a DHCP option'],
  },
  { name: 'not a port of an NTP server', given: { ntp: ['10.9.0.1:123'] }, expect: ['spec.guest.ntp[0]', 'not an IP'] },
  {
    name: 'not a default route among the routes',
    given: route('0.0.0.0/0', '10.1.0.1'),
    expect: ['spec.guest.routes[0].destination', '0.0.0.0/0 is the default route: set subnets[].gateway'],
  },
  { name: 'not host bits in a route', given: route('10.9.0.1/16', '10.1.0.1'), expect: ['10.9.0.1/16 has host bits'] },
  {
    name: 'not an IPv6 gateway of an IPv4 route',
    given: route('10.9.0.0/16', 'fd00:1::1'),
    expect: ['spec.guest.routes[0]', 'fd00:1::1 is not of the family of 10.9.0.0/16'],
  },
  {
    name: 'not two routes to one network',
    given: { routes: ['10.1.0.1', '10.1.0.2'].map((gateway) => ({ destination: '10.9.0.0/16', gateway })) },
    expect: ['spec.guest.routes[1]', 'Duplicate value'],
  },
  {
    name: 'not an MTU that is too small for IPv6',
    given: { mtu: 1279 },
    expect: ['spec.guest.mtu', 'too small for the IPv6 subnets'],
  },
];

const domain = `${'x'.repeat(63)}.${'y'.repeat(63)}.${'z'.repeat(63)}.${'w'.repeat(61)}`;

/** As much as the schema allows. */
export const LARGEST_GUEST: GuestOptions = {
  attachment: Array.from({ length: 127 }, () => 'a').join('.'),
  dhcp: {
    renewSeconds: 86_400,
    rebindSeconds: 172_800,
    leaseSeconds: 604_800,
    options: Array.from({ length: 16 }, (_, n) => ({ code: 200 + n, type: 'text', value: 'x'.repeat(32) })),
    optionsV6: Array.from({ length: 16 }, (_, n) => ({ code: 1000 + n, type: 'text', value: 'x'.repeat(32) })),
    boot: Array.from({ length: 16 }, () => ({
      ipxe: true,
      architectures: Array.from({ length: 8 }, (_, n) => 65_535 - n),
      servers: ['100.100.100.100', 'fd00:1111:2222:3333:4444:5555:6666:7777'],
      file: 'x'.repeat(255),
      parameters: Array.from({ length: 4 }, () => 'x'.repeat(64)),
    })),
  },
  networkData: { default: true },
  dns: { nameservers: Array.from({ length: 8 }, (_, n) => `fd00:9::${n + 1}`), search: [domain] },
  ntp: Array.from({ length: 4 }, (_, n) => `fd00:9::${n + 1}`),
  routes: Array.from({ length: 16 }, (_, n) => ({ destination: `fd00:9:${n}::/48`, gateway: 'fd00:0::1' })),
  mtu: 9216,
};
