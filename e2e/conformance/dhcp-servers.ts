/** The configurations of other DHCP servers: what `guest/packets/testdata/session.jsonl` says about its first guest. */

const MAC = '02:00:00:00:00:0a';
const TIMES = { 'renew-timer': 300, 'rebind-timer': 600, 'valid-lifetime': 86_400 };
const INTERFACES = { 'interfaces-config': { interfaces: ['eth0'] } };
const LEASES = { 'lease-database': { type: 'memfile', persist: false } };
/** The first one is not chosen for the guest. */
const POOLS4 = [{ pool: '10.1.0.200 - 10.1.0.210' }];
const ROUTES = '100a090a010009000a010001';

/** Conditions of Kea on clients that load files over the network. */
const IPXE = "option[77].hex == 'iPXE' or option[175].exists";
const isArchitecture = (...codes: string[]) =>
  codes
    .map((code) => `substring(option[93].hex, 0, 2) == 0x${code} or substring(option[93].hex, 2, 2) == 0x${code}`)
    .join(' or ');
const option = (name: string, data: string) => ({ name, data, 'always-send': name === 'vendor-class-identifier' });
const fromTftp = (file: string) => ({
  'next-server': '10.1.0.8',
  'boot-file-name': file,
  'option-data': [
    option('boot-file-name', file),
    option('tftp-server-name', '10.1.0.8'),
    option('tftp-server-addresses', '10.1.0.8'),
  ],
});
const CLASSES4 = [
  {
    name: 'pxe',
    test: `substring(option[60].hex, 0, 9) == 'PXEClient'`,
    'option-data': [
      option('vendor-class-identifier', 'PXEClient'),
      { name: 'pxe-discovery', data: '060108ff', 'csv-format': false, 'always-send': true },
    ],
  },
  { name: 'ipxe', test: IPXE, 'option-data': [option('boot-file-name', 'http://10.1.0.8/boot.ipxe')] },
  {
    name: 'http',
    test: `substring(option[60].hex, 0, 10) == 'HTTPClient' and (${isArchitecture('0010')})`,
    'option-data': [
      option('vendor-class-identifier', 'HTTPClient'),
      option('boot-file-name', 'http://10.1.0.8/boot.efi'),
    ],
  },
  { name: 'efi', test: `(${isArchitecture('0007', '0009')}) and not (${IPXE})`, ...fromTftp('boot.efi') },
  { name: 'bios', test: `(${isArchitecture('0000')}) and not (${IPXE})`, ...fromTftp('boot.bios') },
];
const CLASSES6 = [
  {
    name: 'ipxe',
    test: 'option[15].hex == 0x000469505845',
    'option-data': [option('bootfile-url', 'http://[fd00:1::8]/boot.ipxe')],
  },
  {
    name: 'efi',
    test: 'option[61].hex == 0x0007 and not option[15].exists',
    'option-data': [
      option('bootfile-url', 'tftp://[fd00:1::8]/boot.efi'),
      { name: 'bootfile-param', data: '000571756965740002726f', 'csv-format': false },
    ],
  },
  {
    name: 'http',
    test: 'option[61].hex == 0x0010',
    'option-data': [
      option('bootfile-url', 'http://[fd00:1::8]/boot.efi'),
      { name: 'vendor-class', data: '00000157000a48545450436c69656e74', 'csv-format': false, 'always-send': true },
    ],
  },
];

export const KEA4 = {
  Dhcp4: {
    ...INTERFACES,
    ...LEASES,
    ...TIMES,
    authoritative: true,
    'calculate-tee-times': false,
    'option-def': [
      { name: 'routes', code: 121, type: 'binary', space: 'dhcp4' },
      { name: 'microsoft-routes', code: 249, type: 'binary', space: 'dhcp4' },
      { name: 'tftp-server-addresses', code: 150, type: 'ipv4-address', array: true, space: 'dhcp4' },
      { name: 'pxe-discovery', code: 43, type: 'binary', space: 'dhcp4' },
    ],
    'client-classes': CLASSES4,
    subnet4: [
      {
        subnet: '10.1.0.0/24',
        pools: POOLS4,
        reservations: [{ 'hw-address': MAC, 'ip-address': '10.1.0.10' }],
        'option-data': [
          { name: 'routers', data: '10.1.0.1' },
          { name: 'domain-name-servers', data: '10.1.0.53' },
          { name: 'domain-name', data: 'example.org' },
          { name: 'domain-search', data: 'example.org, a.example.org' },
          { name: 'interface-mtu', data: '1400' },
          { name: 'ntp-servers', data: '10.1.0.123' },
          { name: 'routes', data: ROUTES, 'csv-format': false },
          { name: 'microsoft-routes', data: ROUTES, 'csv-format': false },
        ],
      },
    ],
  },
};

export const KEA6 = {
  Dhcp6: {
    ...INTERFACES,
    ...LEASES,
    ...TIMES,
    'preferred-lifetime': 86_400,
    'client-classes': CLASSES6,
    'server-id': { type: 'LL', htype: 1, identifier: '020000000002', persist: false },
    subnet6: [
      {
        subnet: 'fd00:1::/64',
        interface: 'eth0',
        'rapid-commit': true,
        pools: [{ pool: 'fd00:1::200 - fd00:1::210' }],
        reservations: [{ 'hw-address': MAC, 'ip-addresses': ['fd00:1::a'] }],
        'option-data': [
          { name: 'dns-servers', data: 'fd00:1::53' },
          { name: 'domain-search', data: 'example.org, a.example.org' },
        ],
      },
    ],
  },
};

const matching = (tag: string, ...parts: string[]) => parts.map((part) => `--dhcp-match=set:${tag},${part}`);

export const DNSMASQ_ARGS = [
  ...['--dhcp-rapid-commit', '--dhcp-leasefile=/run/leases', '--enable-ra', '--ra-param=eth0,mtu:1400,1200,0'],
  ...['--dhcp-range=10.1.0.200,10.1.0.210,255.255.255.0,24h', '--dhcp-range=fd00:1::200,fd00:1::210,64,24h'],
  `--dhcp-host=${MAC},10.1.0.10,[fd00:1::a]`,
  ...['--dhcp-option=option:router,10.1.0.1', '--dhcp-option=option:dns-server,10.1.0.53'],
  ...['--dhcp-option=option:domain-name,example.org', '--dhcp-option=option:domain-search,example.org,a.example.org'],
  ...['--dhcp-option=option:mtu,1400', '--dhcp-option=option:ntp-server,10.1.0.123'],
  ...['--dhcp-option=option:T1,300s', '--dhcp-option=option:T2,600s'],
  ...['121', '249'].map((code) => `--dhcp-option=${code},10.9.0.0/16,10.1.0.9,0.0.0.0/0,10.1.0.1`),
  ...['--dhcp-userclass=set:ipxe,iPXE', ...matching('ipxe', '175')],
  ...matching('efi', 'option:client-arch,7', 'option:client-arch,9', 'option6:61,7'),
  ...matching('bios', 'option:client-arch,0'),
  ...matching('http', 'option:client-arch,16', 'option6:61,16'),
  '--dhcp-boot=tag:ipxe,http://10.1.0.8/boot.ipxe',
  '--dhcp-boot=tag:!ipxe,tag:http,http://10.1.0.8/boot.efi',
  '--dhcp-boot=tag:!ipxe,tag:efi,boot.efi,10.1.0.8,10.1.0.8',
  '--dhcp-boot=tag:!ipxe,tag:bios,boot.bios,10.1.0.8,10.1.0.8',
  '--dhcp-option=150,10.1.0.8',
  '--dhcp-option-force=tag:http,60,HTTPClient',
  '--dhcp-option=tag:ipxe,option6:bootfile-url,http://[fd00:1::8]/boot.ipxe',
  '--dhcp-option=tag:!ipxe,tag:efi,option6:bootfile-url,tftp://[fd00:1::8]/boot.efi',
  '--dhcp-option=tag:!ipxe,tag:http,option6:bootfile-url,http://[fd00:1::8]/boot.efi',
  ...['--dhcp-option=option6:dns-server,[fd00:1::53]', '--dhcp-option=option6:domain-search,example.org,a.example.org'],
];
