import { type Address, formatAddress, readAddress, sameAddress } from '../../addressing/address/address.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import { describeLeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { describeValue, nameFirst } from '../../api/json.js';
import { type VirtualMachineInstance, secondaryNetworks } from '../../api/kubevirt.js';
import { parseMac } from '../../api/mac-address.js';
import { type KubeObject, joinKey, objectKey } from '../../api/meta.js';
import { NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { NetworkSelectionError, networkSelectionsOf } from '../../api/networks/network-selection.js';
import { groupBy } from '../group-by.js';
import { type Pod, isOfNad, isTerminal, networkStatuses, reportedIPsOf } from '../../api/pod.js';

/** What decides whether a lease may be released. Read after the lease, so that the precondition of the write covers the time since. */
interface LeaseToRelease {
  readonly lease: LeaseRecord;
  readonly owner: 'alive' | 'gone';
  /** Whether the owner is a pod whose node exists. */
  readonly hasNode: boolean;
  /** Of the whole cluster. */
  readonly pods: readonly Mention[];
  readonly vmis: readonly Mention[];
  readonly claims: readonly Mention[];
  /** Pods, VMIs and nodes, `pod/namespace/name`, `vmi/namespace/name` or `node/name`, that do not use the address, although it looks so. */
  readonly ignored: ReadonlySet<string>;
}

const MAX_NAMED = 3;

/** Returns why the lease may not be released: who uses it or will. Empty if it may. */
export function refusalsOf(observed: LeaseToRelease): string[] {
  const { lease, owner } = observed;
  const name = lease.metadata.name;
  const state = stateOf(lease);
  if (state === 'quarantined') {
    return [
      `AddressLease ${name} is quarantined and has no owner: to free the address, run kubectl delete alease ${name}`,
    ];
  }
  if (state === 'reserved' || lease.owner === undefined) {
    return [
      `AddressLease ${name} is a reservation: run kubectl holdfast unreserve ${lease.pool} ${formatAddress(lease.address)}`,
    ];
  }
  if (state === 'released') return [`AddressLease ${name} is released already: the address cools down`];
  const unlessIgnored = (kind: 'pod' | 'vmi', mentions: readonly Mention[]) =>
    mentions.filter(({ key }) => !observed.ignored.has(`${kind}/${key}`));
  return [
    ...(owner === 'alive'
      ? [`${describeLeaseOwner(lease.owner)} still exists: delete it, or the VM to which it belongs`]
      : refusalsOfNode(observed)),
    ...refusalsOfUsers('pod', unlessIgnored('pod', observed.pods)),
    ...refusalsOfUsers('vmi', unlessIgnored('vmi', observed.vmis)),
    ...refusalsOfClaims(observed.claims),
  ];
}

/** The kubelet may not have seen yet that the pod is gone, or lets its containers end in their own time. */
function refusalsOfNode({ lease: { owner, node = '' }, hasNode, ignored }: LeaseToRelease): string[] {
  if (owner === undefined || !hasNode || ignored.has(`node/${node}`)) return [];
  return [
    `containers of pod ${joinKey(owner.namespace, owner.name)} may still run on node ${node}, whose agent releases the address when they cannot: wait for that, ` +
      `or delete the Node if its machine is off; or add --ignore node/${node} if you know that they have ended`,
  ];
}

const WHAT: Readonly<Record<Mention['kind'], (text: string) => string>> = {
  address: () => 'reports the address',
  unreadable: (text) => `reports an address that cannot be read (${text})`,
  mac: () => 'runs with the MAC address of the lease, and reports no address of its family',
  silent: () => 'is on a network of the address, and does not report its addresses',
};

const REMEDY = { pod: 'delete the pod, or stop its VM', vmi: 'stop the VM' };

function refusalsOfUsers(kind: 'pod' | 'vmi', mentions: readonly Mention[]): string[] {
  return [...groupBy(mentions, ({ kind: what }) => what)].map(([what, same]) => {
    const [first] = same;
    const option = `--ignore ${kind}/${first?.key ?? ''}`;
    const says = `${kind === 'vmi' ? 'VMI' : kind} ${namesOf(same)} ${WHAT[what](describeValue(first?.text))}`;
    return `${says}: ${REMEDY[kind]}; or add ${option} if you know that it does not use the address`;
  });
}

function refusalsOfClaims(mentions: readonly Mention[]): string[] {
  return [...groupBy(mentions, ({ kind }) => kind)].map(([what, same]) => {
    const subject = `IPAMClaim ${namesOf(same)} has`;
    if (what === 'address') return `${subject} the address in its status and gets it back: delete its VM first`;
    const value = describeValue(same[0]?.text);
    return `${subject} an address that cannot be read (${value}) in its status: correct or clear it, or delete the VM first`;
  });
}

function namesOf(mentions: readonly Mention[]): string {
  const keys = mentions.map(({ key }) => key);
  return nameFirst(keys, MAX_NAMED);
}

/** Who may have addresses of the address space of a lease. */
export interface SpaceUsers {
  /** True if the network of that NAD, `namespace/name`, is in the address space, or if that is unknown. */
  readonly isOfSpace: (nad: string) => boolean;
  /** True if pools of that CNI network are in the address space, or if that space has no pools. */
  readonly isNetworkOfSpace: (network: string) => boolean;
  /** True if a pool of the address space serves that namespace, or if that space has no pools. */
  readonly isServed: (namespace: string) => boolean;
}

/** Finds an object that mentions the address of a lease. */
export type FindMention<T> = (object: T, lease: LeaseRecord, users: SpaceUsers) => Mention | undefined;

/** An object that uses the address, or may use it because it says something that cannot be read. */
export interface Mention {
  /** `namespace/name` */
  readonly key: string;
  /**
   * - `address`: it has the address
   * - `unreadable`: it has a text that is no address
   * - `mac`: it has the MAC address of the lease, and shows no address of its family
   * - `silent`: it does not say which addresses it has
   */
  readonly kind: 'address' | 'unreadable' | 'mac' | 'silent';
  /** The text that cannot be read. */
  readonly text?: string;
}

/**
 * Finds what Multus reports about a pod. Tenants may change or delete the report. So a pod on a network of the space without a report that can be
 * read may be a user, but only if a pool serves its namespace: otherwise any tenant could prevent every release.
 */
export const mentionOfPod: FindMention<Pod> = (pod, lease, users) => {
  if (isTerminal(pod)) return undefined;
  const reported = networkStatuses(pod).filter(isOfNad);
  const ofSpace = reported.filter(({ name }) => users.isOfSpace(name));
  const found = mentionIn(pod, ofSpace.flatMap(reportedIPsOf), lease.address);
  if (found?.kind === 'address') return found;
  if (!users.isServed(pod.metadata.namespace ?? '')) return undefined;
  if (found !== undefined) return found;
  const isSilent = hasUnreportedNetwork(pod, new Set(reported.map(({ name }) => name)), users);
  return isSilent ? { key: objectKey(pod), kind: 'silent' } : undefined;
};

/** True if the pod has an interface on a network of the space that is not reported, as far as its annotations say. */
function hasUnreportedNetwork(pod: Pod, reported: ReadonlySet<string>, { isOfSpace }: SpaceUsers): boolean {
  // Multus reports all networks at once, before the containers of a pod start
  const isReportExpected =
    pod.status?.phase === 'Running' || pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION] !== undefined;
  if (!isReportExpected) return false;
  try {
    const requested = networkSelectionsOf(pod).map(({ nad }) => joinKey(nad.namespace, nad.name));
    return requested.some((nad) => isOfSpace(nad) && !reported.has(nad));
  } catch (error) {
    if (!(error instanceof NetworkSelectionError)) throw error;
    return reported.size === 0;
  }
}

/**
 * Finds what KubeVirt reports about a VMI. Without a guest agent it knows MAC addresses and those of the launcher, from 1.9 on only the IPv4 addresses of
 * a bridge.
 */
export const mentionOfVmi: FindMention<VirtualMachineInstance> = (vmi, lease, { isOfSpace }) => {
  const { namespace = '' } = vmi.metadata;
  const key = objectKey(vmi);
  const networks = secondaryNetworks(vmi.spec, namespace)
    .filter(({ nad }) => isOfSpace(joinKey(nad.namespace, nad.name)))
    .map(({ name }) => name);
  const interfaces = (vmi.status?.interfaces ?? []).filter(({ name }) => name !== undefined && networks.includes(name));
  const found = mentionIn(
    vmi,
    interfaces.flatMap(({ ipAddresses = [] }) => ipAddresses),
    lease.address,
  );
  if (found?.kind === 'address') return found;
  const isOfFamily = (text: string) => readAddress(text)?.family === lease.address.family;
  const hasMac =
    lease.mac !== undefined &&
    interfaces.some(
      ({ mac, ipAddresses = [] }) => mac !== undefined && !ipAddresses.some(isOfFamily) && parseMac(mac) === lease.mac,
    );
  return hasMac && namespace === lease.owner?.namespace ? { key, kind: 'mac' } : undefined;
};

/** Finds the addresses that a claim gets back. */
export const mentionOfClaim: FindMention<IPAMClaim> = (claim, lease, { isNetworkOfSpace }) => {
  if (claim.metadata.uid === lease.owner?.uid || !isNetworkOfSpace(claim.spec.network)) return undefined;
  return mentionIn(claim, claim.status?.ips ?? [], lease.address);
};

function mentionIn(object: KubeObject, texts: readonly string[], address: Address): Mention | undefined {
  const key = objectKey(object);
  if (texts.some((text) => compare(text, address) === 'same')) return { key, kind: 'address' };
  const text = texts.find((each) => compare(each, address) === 'unreadable');
  return text === undefined ? undefined : { key, kind: 'unreadable', text };
}

function compare(text: string, address: Address): 'same' | 'other' | 'unreadable' {
  const other = readAddress(text);
  if (other === undefined) return 'unreadable';
  return sameAddress(other, address) ? 'same' : 'other';
}
