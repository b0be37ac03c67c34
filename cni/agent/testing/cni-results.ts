/**
 * Results of plugins that delegate IPAM, as libcni sends them back with CHECK and DEL (`prevResult`): bridge and macvlan of
 * github.com/containernetworking/plugins v1.9.1, in the forms of github.com/containernetworking/cni v1.3.0 (pkg/types/100 and pkg/types/040).
 */
const MAC = '02:00:00:00:00:05';
const NETNS = '/var/run/netns/cni-5f2c1d0e-9a0b-4a77-8a1d-2c3f4e5a6b7c';

/** The bridge and the end of the pair on the node come first, so the addresses belong to the third interface. */
const BRIDGE_INTERFACES = [
  { name: 'br1', mac: '02:00:00:00:00:01' },
  { name: 'veth1a2b3c4d', mac: '02:00:00:00:00:02' },
  { name: 'net1', mac: MAC, sandbox: NETNS },
];
const ROUTES = [{ dst: '10.9.0.0/16', gw: '10.0.0.1' }];

export const PREV_RESULTS = {
  'bridge, CNI 1.0.0': {
    cniVersion: '1.0.0',
    interfaces: BRIDGE_INTERFACES,
    ips: [
      { interface: 2, address: '10.0.0.5/24', gateway: '10.0.0.1' },
      { interface: 2, address: 'fd00::5/64' },
    ],
    routes: ROUTES,
    dns: {},
  },
  'bridge, CNI 0.4.0': {
    cniVersion: '0.4.0',
    interfaces: BRIDGE_INTERFACES,
    ips: [
      { version: '4', interface: 2, address: '10.0.0.5/24', gateway: '10.0.0.1' },
      { version: '6', interface: 2, address: 'fd00::5/64' },
    ],
    routes: ROUTES,
    dns: {},
  },
  'macvlan, CNI 1.1.0': {
    cniVersion: '1.1.0',
    interfaces: [{ name: 'net1', mac: MAC, sandbox: NETNS }],
    ips: [
      { interface: 0, address: '10.0.0.5/24' },
      { interface: 0, address: 'fd00::5/64' },
    ],
    dns: {},
  },
} as const;
