import {
  HOLDFAST_IPAM,
  WHEREABOUTS_IPAM,
  readIpamDelegation,
  unintendedLoss,
} from '../../api/networks/ipam-delegation.js';
import { asList, asRecord, nameFirst } from '../../api/json.js';
import { secondaryNetworks, type VirtualMachine } from '../../api/kubevirt.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { deliveryOf } from '../../api/networks/nad-guests.js';
import { PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../api/names.js';
import {
  type NetworkAttachmentDefinition,
  type NetworkConfigProblem,
  parseNetworkConfig,
  readCniConfig,
} from '../../api/networks/network-attachment.js';
import { docsUrl } from '../../process/docs-url.js';
import { type CheckReport, checkReads } from '../doctor/check-report.js';
import { type Finding, errorOf, warningOf } from '../doctor/finding.js';
import { count } from '../output.js';
import { isUnread, valueOf } from '../reader.js';
import { ownWorkloads } from './check-surroundings.js';
import type { ObservedTarget } from './observe.js';
import { isOlder } from './requirements.js';

const MAX_NAMED = 5;
/** Allocates the addresses of its networks itself, and honours claims. */
const OVN_PLUGIN = 'ovn-k8s-cni-overlay';

/** NADs on which something changes with the installation. */
export function checkNetworks(observed: ObservedTarget): CheckReport {
  const { nads, deployments, daemonSets } = observed;
  return checkReads('networks', [nads], () => {
    const all = valueOf(nads, []);
    const isMissing = ![deployments, daemonSets].some(isUnread) && ownWorkloads(observed).length === 0;
    const persistent = all.filter(isPersistent).length;
    return {
      message: `${count(all.length, 'NAD')}, ${persistent} of them with allowPersistentIPs: VMs on those keep their addresses`,
      findings: all.flatMap((nad) => checkNetwork(nad, isMissing)),
    };
  });
}

function isPersistent(nad: NetworkAttachmentDefinition): boolean {
  const config = parseNetworkConfig(nad);
  return config.ok && config.network.allowPersistentIPs;
}

function checkNetwork(nad: NetworkAttachmentDefinition, isMissing: boolean): Finding[] {
  const object = `NetworkAttachmentDefinition ${objectKey(nad)}`;
  const warn = (problem: string, remedy: string) => warningOf('networks', object, problem, remedy);
  const config = parseNetworkConfig(nad);
  const ipam = readIpamDelegation(nad);
  if (!config.ok) return invalidNetwork(nad, config.problem);
  if (ipam.kind === 'invalid') return invalidNetwork(nad, ipam.problem);
  const loss = unintendedLoss(config.network, ipam.kind);
  const found = loss === undefined ? [] : [warn(`VMs on it do not keep their addresses: ${loss}`, 'correct the NAD')];
  const waits = `delegates to ${HOLDFAST_IPAM}: its pods start only when Holdfast runs`;
  if (ipam.kind === 'holdfast' && isMissing) found.push(warn(waits, 'install Holdfast, or wait with it'));
  if (!config.network.allowPersistentIPs) return found;
  return [...found, ...checkPersistent(nad, ipam.kind === 'other' ? ipam.type : undefined, warn)];
}

/** An invalid NAD that is not meant for Holdfast is none of its business. */
function invalidNetwork(nad: NetworkAttachmentDefinition, { field, message }: NetworkConfigProblem): Finding[] {
  if (!/holdfast|allowPersistentIP/i.test(nad.spec?.config ?? '')) return [];
  const object = `NetworkAttachmentDefinition ${objectKey(nad)}`;
  return [errorOf('networks', object, `${field} ${message}`, `see ${docsUrl('how-to/pools.md')}`)];
}

/** A NAD that allows persistent addresses before there is Holdfast: its VMs get claims at once. */
function checkPersistent(
  nad: NetworkAttachmentDefinition,
  other: string | undefined,
  warn: (problem: string, remedy: string) => Finding,
): Finding[] {
  const opens = 'sets allowPersistentIPs, so its VMs get IPAMClaims as soon as Holdfast runs';
  if (other !== undefined) {
    const problem = `${opens}, but ${other} allocates its addresses and honours no claim`;
    const guide = docsUrl(other === WHEREABOUTS_IPAM ? 'tutorials/moving-from-whereabouts.md' : 'how-to/pools.md');
    return [warn(problem, `move it to ${HOLDFAST_IPAM}, or remove allowPersistentIPs until then: ${guide}`)];
  }
  const delivery = deliveryOf(nad);
  if (delivery.kind === 'cni' || isOvn(nad)) return [];
  const guide = `create a pool with spec.guest: ${docsUrl('how-to/layer-2-networks.md#serve-the-vms-of-a-network')}`;
  if (delivery.kind === 'guest') return [warn(`${opens}. It has no ipam: only a pool gives them addresses`, guide)];
  return [warn(`${opens}, and nobody gives them addresses: ${delivery.why}`, 'correct the NAD')];
}

function isOvn(nad: NetworkAttachmentDefinition): boolean {
  const config = readCniConfig(nad);
  const plugins = config.ok ? [config.value, ...asList(config.value?.plugins)] : [];
  return plugins.some((plugin) => asRecord(plugin).type === OVN_PLUGIN);
}

/** VMs that get claims with the installation. */
export function checkVirtualMachines(observed: ObservedTarget): CheckReport {
  return checkReads('vms', [observed.vms, observed.nads, observed.namespaces], () => {
    const served = servedVms(observed);
    const interfaces = served.reduce((sum, { networks }) => sum + networks.length, 0);
    const names = served.map(({ vm }) => objectKey(vm));
    const message =
      served.length === 0
        ? 'no VM gets an IPAMClaim'
        : `${count(served.length, 'VM')} with ${count(interfaces, 'interface')} on persistent networks get IPAMClaims: ${nameFirst(names, MAX_NAMED)}. Those that run keep the address that they have. The label ${PERSISTENT_IPS_LABEL}=${PERSISTENT_IPS_DISABLED} on a namespace leaves it out`;
    return { message, findings: [] };
  });
}

interface ServedVm {
  readonly vm: VirtualMachine;
  /** The names of its networks with persistent addresses. */
  readonly networks: readonly string[];
}

function servedVms({ vms, nads, namespaces }: ObservedTarget): ServedVm[] {
  const persistent = new Set(valueOf(nads, []).filter(isPersistent).map(objectKey));
  const leftOut = valueOf(namespaces, []).filter(
    ({ metadata: { name, labels } }) =>
      name === 'kube-system' || labels?.[PERSISTENT_IPS_LABEL] === PERSISTENT_IPS_DISABLED,
  );
  const ignored = new Set(leftOut.map(({ metadata }) => metadata.name));
  return valueOf(vms, []).flatMap((vm) => {
    const { namespace = '' } = vm.metadata;
    if (ignored.has(namespace)) return [];
    const networks = secondaryNetworks(vm.spec?.template?.spec, namespace)
      .filter(({ nad }) => persistent.has(joinKey(nad.namespace, nad.name)))
      .map(({ name }) => name);
    return networks.length === 0 ? [] : [{ vm, networks }];
  });
}

const DEFAULT_RANGE = { start: '02:00:00:00:00:00', end: '02:FF:FF:FF:FF:FF' };

/** MAC addresses of interfaces with bridge binding: guests are known by them on a layer-2 network. */
export function checkMacAddresses(observed: ObservedTarget): CheckReport {
  const { vms, nads, namespaces, webhooks, macPool } = observed;
  return checkReads('mac-addresses', [vms, nads, namespaces, webhooks], () => {
    if (macPool !== undefined) return checkMacPool(macPool);
    const changing = servedVms(observed).filter(({ vm, networks }) =>
      vm.spec?.template?.spec?.domain?.devices?.interfaces?.some(
        ({ name, bridge, macAddress }) => bridge !== undefined && macAddress === undefined && networks.includes(name),
      ),
    );
    const message = 'each interface with bridge binding on a persistent network has a MAC address of its own';
    if (changing.length === 0) return { message, findings: [] };
    const names = changing.map(({ vm }) => objectKey(vm));
    const version = valueOf(observed.kubevirts, [])[0]?.status?.observedKubeVirtVersion ?? '';
    const migration = isOlder(version, '1.9') ? ', and loses DHCP after a live migration with this KubeVirt' : '';
    const problem = `have interfaces with bridge binding and without macAddress: ${nameFirst(names, MAX_NAMED)}. Such a guest has another MAC address at each start${migration}`;
    const remedy = `set macAddress, or install KubeMacPool before these VMs are created: ${docsUrl('concepts/live-migration.md#what-to-set')}`;
    return { message, findings: [warningOf('mac-addresses', count(changing.length, 'VM'), problem, remedy)] };
  });
}

function checkMacPool({ start, end }: NonNullable<ObservedTarget['macPool']>): Omit<CheckReport, 'check' | 'state'> {
  const range = start === undefined || end === undefined ? 'a range that you may not read' : `${start} to ${end}`;
  const message = `KubeMacPool writes MAC addresses into VMs, from ${range}`;
  const isDefault = start?.toUpperCase() === DEFAULT_RANGE.start && end?.toUpperCase() === DEFAULT_RANGE.end;
  const problem = `its range ${range} is the default: another cluster on the same bridge or VLAN may give a VM the same MAC address`;
  const remedy = 'give each cluster a range of its own in the ConfigMap kubemacpool-mac-range-config';
  return { message, findings: isDefault ? [warningOf('mac-addresses', 'KubeMacPool', problem, remedy)] : [] };
}
