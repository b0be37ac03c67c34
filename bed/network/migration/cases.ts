import { bridgeNetwork } from '../fixture/wire-fixture.js';
import type { MigrationCase } from './wire-migration.js';

const MAC = '02:00:00:00:00:07';
const IPAM = { type: 'static' };
const HELD = { ipam: { type: 'holdfast' } };

/**
 * Sysctls with which the kernel of a launcher answers no ARP and sends no IPv6. They do not affect the guest, and virt-handler
 * still finds the IPv4 address on the interface.
 */
export const QUIET_SYSCTLS = {
  type: 'tuning',
  sysctl: { 'net.ipv4.conf.IFNAME.arp_ignore': '8', 'net.ipv6.conf.IFNAME.disable_ipv6': '1' },
};

export type NamedCase = Omit<MigrationCase, 'segment'>;

/** The combinations of NAD settings and MAC address to test. @param segment name of the bridge */
export const CASES: Readonly<Record<string, (segment: string) => NamedCase>> = {
  'bridge, MAC in the spec': (segment) => bridge(segment, { mac: MAC }),
  'bridge, MAC in the spec, guest speaks every 100 ms': (segment) =>
    bridge(segment, { mac: MAC, guestSpeaksEveryMs: 100 }),
  'bridge, MAC in the spec, promiscMode': (segment) => bridge(segment, { mac: MAC }, { promiscMode: true }),
  'bridge, MAC in the spec, enabledad': (segment) => bridge(segment, { mac: MAC }, { enabledad: true }),
  'bridge, MAC in the spec, quiet': (segment) => quietBridge(segment, { mac: MAC }),
  'bridge, own MACs': (segment) => bridge(segment, {}),
  'bridge, own MACs, a stranger asks': (segment) => bridge(segment, { stranger: true }),
  'bridge, own MACs, enabledad, a stranger asks': (segment) => bridge(segment, { stranger: true }, { enabledad: true }),
  'bridge, own MACs, quiet, a stranger asks': (segment) => quietBridge(segment, { stranger: true }),
  'layer 2, MAC in the spec': (segment) => layer2(segment),
  'layer 2, MAC in the spec, disableContainerInterface': (segment) =>
    layer2(segment, { disableContainerInterface: true }),
  'macvlan, MAC in the spec': (segment) => macvlan(segment, { mac: MAC }),
  'macvlan, own MACs': (segment) => macvlan(segment, {}),
  'held: bridge, MAC in the spec': (segment) => bridge(segment, { mac: MAC, held: true }, HELD),
  'held: bridge, MAC in the spec, guest speaks every 100 ms': (segment) =>
    bridge(segment, { mac: MAC, guestSpeaksEveryMs: 100, held: true }, HELD),
  'held: bridge, MAC in the spec, promiscMode': (segment) =>
    bridge(segment, { mac: MAC, held: true }, { ...HELD, promiscMode: true }),
  'held: bridge, MAC in the spec, enabledad': (segment) =>
    bridge(segment, { mac: MAC, held: true }, { ...HELD, enabledad: true }),
  'held: bridge, MAC in the spec, quiet': (segment) => quietBridge(segment, { mac: MAC, held: true }, HELD),
  'held: bridge, MAC in the spec, a stranger asks': (segment) =>
    bridge(segment, { mac: MAC, stranger: true, held: true }, HELD),
  'held: bridge, own MACs, a stranger asks': (segment) => bridge(segment, { stranger: true, held: true }, HELD),
  'held: macvlan, MAC in the spec': (segment) => macvlan(segment, { mac: MAC, held: true }, HELD),
  'held: macvlan, own MACs': (segment) => macvlan(segment, { held: true }, HELD),
};

function bridge(segment: string, more: Partial<NamedCase>, settings: object = {}): NamedCase {
  return { as: 'bridge', config: bridgeNetwork(segment, IPAM, settings), ...more };
}

function quietBridge(segment: string, more: Partial<NamedCase>, settings: object = {}): NamedCase {
  const plugins = [bridgeNetwork(segment, IPAM, settings), QUIET_SYSCTLS];
  return { as: 'bridge', config: { cniVersion: '1.0.0', plugins }, ...more };
}

/** A network without IPAM: only the guest has the addresses. */
function layer2(segment: string, settings: object = {}): NamedCase {
  return { as: 'bridge', config: bridgeNetwork(segment, {}, settings), mac: MAC };
}

function macvlan(segment: string, more: Partial<NamedCase>, settings: object = {}): NamedCase {
  const capabilities = { ips: true };
  const config = { cniVersion: '1.0.0', type: 'macvlan', master: segment, capabilities, ipam: IPAM, ...settings };
  return { as: 'nic', config, ...more };
}
