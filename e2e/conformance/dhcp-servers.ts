/** The configurations of other DHCP servers: what `guest/packets/testdata/session.jsonl` says about its first guest. */

const MAC = '02:00:00:00:00:0a';
const TIMES = { 'renew-timer': 300, 'rebind-timer': 600, 'valid-lifetime': 86_400 };
const INTERFACES = { 'interfaces-config': { interfaces: ['eth0'] } };
const LEASES = { 'lease-database': { type: 'memfile', persist: false } };
/** The first one is not chosen for the guest. */
const POOLS4 = [{ pool: '10.1.0.200 - 10.1.0.210' }];
const ROUTES = '100a090a010009000a010001';

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
    ],
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

export const DNSMASQ_ARGS = [
  ...['--dhcp-rapid-commit', '--dhcp-leasefile=/run/leases', '--enable-ra', '--ra-param=eth0,mtu:1400,1200,0'],
  ...['--dhcp-range=10.1.0.200,10.1.0.210,255.255.255.0,24h', '--dhcp-range=fd00:1::200,fd00:1::210,64,24h'],
  `--dhcp-host=${MAC},10.1.0.10,[fd00:1::a]`,
  ...['--dhcp-option=option:router,10.1.0.1', '--dhcp-option=option:dns-server,10.1.0.53'],
  ...['--dhcp-option=option:domain-name,example.org', '--dhcp-option=option:domain-search,example.org,a.example.org'],
  ...['--dhcp-option=option:mtu,1400', '--dhcp-option=option:ntp-server,10.1.0.123'],
  ...['--dhcp-option=option:T1,300s', '--dhcp-option=option:T2,600s'],
  ...['121', '249'].map((code) => `--dhcp-option=${code},10.9.0.0/16,10.1.0.9,0.0.0.0/0,10.1.0.1`),
  ...['--dhcp-option=option6:dns-server,[fd00:1::53]', '--dhcp-option=option6:domain-search,example.org,a.example.org'],
];
