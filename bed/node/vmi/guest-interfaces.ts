import { createHash } from 'node:crypto';
import { parseMac } from '../../../api/mac-address.js';
import { podInterfaceName } from '../../../api/pod.js';
import { addressFields, withGuestAgent, type AgentInterface } from './guest-agent.js';
import type { GuestInterface, Vmi, WantedInterface } from './virtual-machine-instance.js';

/** KubeVirt's sources of information about an interface: libvirt's domain and Multus' network-status. */
const DOMAIN = 'domain';
const MULTUS = 'multus-status';
const LINK_LOCAL = /^(fe80:|169\.254\.)/;

/** An interface of the guest's launcher in its network-status. */
export interface LauncherInterface {
  readonly interface: string;
  /** The pod network, or the network in its place. */
  readonly default?: boolean;
  /** That which CNI gave it. With bridge binding the guest has it from then on. */
  readonly mac?: string;
  readonly ips?: readonly string[];
}

/**
 * Returns `status.interfaces` as virt-handler reports it: with the addresses that CNI gave the launcher, and those of the guest agent.
 * virt-handler plugs an interface into the guest when Multus reports it in the pod, and unplugs one whose state is `absent`. Entries
 * of Multus, which virt-controller writes, stay unchanged. An interface without any source is removed. See `UpdateStatus` of KubeVirt v1.8.0
 * (pkg/network/setup/netstat.go), and pkg/network/controllers/vmi.go for virt-controller.
 * @param launcher undefined if it is not known: addresses stay as they were
 */
export function guestInterfaces(
  vmi: Vmi,
  launcher?: readonly LauncherInterface[],
  agent: readonly AgentInterface[] = [],
): GuestInterface[] {
  const reported = new Map((vmi.status?.interfaces ?? []).map((entry) => [entry.name, entry]));
  const wanted = vmi.spec?.domain?.devices?.interfaces ?? [];
  const found = wanted.flatMap((wish) => {
    const inLauncher = launcher?.find((one) => isInterfaceOf(vmi, wish.name, one));
    const before = reported.get(wish.name);
    const entry = guestInterface(vmi, wish, { before, mac: before?.mac ?? inLauncher?.mac });
    return entry === undefined ? [] : launcher ? withLauncher(entry, inLauncher) : entry;
  });
  return withGuestAgent(
    found,
    agent.map((one) => withoutLinkLocal(one, found, wanted)),
  );
}

function guestInterface(
  vmi: Vmi,
  wanted: WantedInterface,
  { before, mac }: { readonly before: GuestInterface | undefined; readonly mac: string | undefined },
): GuestInterface | undefined {
  const sources = before?.infoSource?.split(', ') ?? [];
  const isInPod = sources.includes(MULTUS);
  const isInGuest = sources.includes(DOMAIN) || isInPod || !isSecondary(vmi, wanted.name);
  if (isInGuest && wanted.state !== 'absent') {
    return {
      ...before,
      name: wanted.name,
      infoSource: isInPod ? `${DOMAIN}, ${MULTUS}` : DOMAIN,
      ...domainFields(vmi, wanted, mac),
    };
  }
  return isInPod ? unpluggedInterface(wanted.name, before?.podInterfaceName) : undefined;
}

/**
 * libvirt writes MAC addresses in one form. Without one in the spec, a guest with bridge binding takes that of its first launcher, also
 * to the target of a migration. KubeVirt generates those of other bindings. That of an SR-IOV device is shown as in the spec, without the fields of an emulated interface. */
function domainFields(
  vmi: Vmi,
  { name, macAddress, sriov, bridge }: WantedInterface,
  known: string | undefined,
): Partial<GuestInterface> {
  if (sriov !== undefined) return macAddress === undefined ? {} : { mac: macAddress };
  const inherited = bridge === undefined ? undefined : known;
  const mac = parseMac(macAddress ?? '') ?? inherited ?? generateMac(`${String(vmi.metadata.uid)}${name}`);
  return { mac, queueCount: 1, linkState: 'up' };
}

/** An interface in the guest with the addresses of that in the launcher. */
function withLauncher(entry: GuestInterface, inLauncher: LauncherInterface | undefined): GuestInterface {
  const { ipAddress: _first, ipAddresses: _all, interfaceName: _inGuest, ...rest } = entry;
  if (entry.infoSource?.includes(DOMAIN) !== true) return rest;
  return { ...rest, ...addressFields(inLauncher?.ips ?? []) };
}

function isInterfaceOf(vmi: Vmi, name: string, inLauncher: LauncherInterface): boolean {
  return isSecondary(vmi, name) ? inLauncher.interface === podInterfaceName(name) : inLauncher.default === true;
}

/** A guest behind masquerade has link-local addresses that nobody reaches, and virt-handler does not show them. */
function withoutLinkLocal(
  reported: AgentInterface,
  known: readonly GuestInterface[],
  wanted: readonly WantedInterface[],
): AgentInterface {
  const { name } = known.find(({ mac }) => mac === reported.mac) ?? {};
  if (wanted.find((one) => one.name === name)?.masquerade === undefined) return reported;
  return { ...reported, ips: reported.ips.filter((ip) => !LINK_LOCAL.test(ip)) };
}

/** The entry of an unplugged interface until Multus detaches it. */
function unpluggedInterface(name: string, podInterfaceName: string | undefined): GuestInterface {
  return { name, infoSource: MULTUS, ...(podInterfaceName === undefined ? {} : { podInterfaceName }) };
}

/** Whether Multus attaches the network in addition to the pod network, and reports it under its own name. */
function isSecondary(vmi: Vmi, name: string): boolean {
  const network = vmi.spec?.networks?.find((candidate) => candidate.name === name);
  return network?.multus !== undefined && network.multus.default !== true;
}

/** Derives a locally administered MAC address from the seed. */
export function generateMac(seed: string): string {
  const digest = createHash('sha256').update(seed).digest();
  return ['02', ...[...digest.subarray(0, 5)].map((byte) => byte.toString(16).padStart(2, '0'))].join(':');
}
