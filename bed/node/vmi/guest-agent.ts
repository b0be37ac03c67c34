import type { GuestInterface } from './virtual-machine-instance.js';

/** An interface as the guest agent reports it. */
export interface AgentInterface {
  readonly name: string;
  readonly mac: string;
  /** Without prefix lengths, link-local ones too. */
  readonly ips: readonly string[];
}

/** An entry without a name for each interface of the guest that the VMI does not have, at most so many. */
const MAX_UNKNOWN = 10;

/**
 * Adds the report of the guest agent to the interfaces of a VMI, as virt-handler does (netstat.go of KubeVirt 1.8): entries belong
 * together by MAC address. For each family, the addresses of the launcher stay unless the guest has none.
 */
export function withGuestAgent(
  interfaces: readonly GuestInterface[],
  reported: readonly AgentInterface[],
): GuestInterface[] {
  const known = interfaces.map((entry) => {
    const found = reported.find(({ mac }) => mac === entry.mac);
    if (!found) return entry;
    const { ipAddress: _first, ipAddresses = [], ...rest } = entry;
    const ips = [false, true].flatMap((isIPv6) => {
      const [shown, own] = [ipAddresses, found.ips].map((all) => all.filter((ip) => ip.includes(':') === isIPv6));
      return shown?.length && own?.length ? shown : (own ?? []);
    });
    const infoSource = (entry.infoSource ?? '').replace('domain', 'domain, guest-agent');
    return { ...rest, infoSource, interfaceName: found.name, ...addressFields(ips) };
  });
  const unknown = reported.filter(({ mac }) => !interfaces.some((entry) => entry.mac === mac));
  return [
    ...known,
    ...unknown.slice(0, MAX_UNKNOWN).map(({ name, mac, ips }) => {
      return { mac, interfaceName: name, infoSource: 'guest-agent', ...addressFields(ips) };
    }),
  ];
}

/** The fields of a VMI's interface for its addresses. */
export function addressFields(ips: readonly string[]): Pick<GuestInterface, 'ipAddress' | 'ipAddresses'> {
  const [ipAddress] = ips;
  return ipAddress === undefined ? {} : { ipAddress, ipAddresses: [...ips] };
}
