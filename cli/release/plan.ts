import type { LeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { describeValue } from '../../api/json.js';
import { type KubeObject, objectKey } from '../../api/meta.js';
import { networkStatuses, reportedIPsOf } from '../../api/network-status.js';
import { type Pod, isTerminal } from '../../api/pod.js';
import { type Address, formatAddress, parseAddressOrPrefix, sameAddress } from '../../ipam/core/address.js';
import { type LeaseRecord, stateOf } from '../../ipam/core/lease.js';

/** What decides whether a lease may be released. Read after the lease, so that the precondition of the write covers the time since. */
export interface ObservedLease {
  readonly lease: LeaseRecord;
  readonly owner: 'alive' | 'gone';
  /** All pods of the cluster. */
  readonly pods: readonly Pod[];
  /** All claims of the cluster. */
  readonly claims: readonly IPAMClaim[];
  /** True if the network of that NAD, `namespace/name`, is in the address space of the lease, or if that is unknown. */
  readonly isOfSpace: (nad: string) => boolean;
  /** True if pools of that CNI network are in the address space of the lease, or if that space has no pools. */
  readonly isNetworkOfSpace: (network: string) => boolean;
}

const MAX_NAMED = 3;
const THE_ADDRESS = 'the address';

/** Returns why the lease may not be released: who uses it or will. Empty if it may. */
export function refusalsOf(observed: ObservedLease): string[] {
  const { lease, owner } = observed;
  const name = lease.metadata.name;
  const state = stateOf(lease);
  if (state === 'reserved' || lease.owner === undefined) {
    return [
      `AddressLease ${name} is a reservation: run kubectl holdfast unreserve ${lease.pool} ${formatAddress(lease.address)}`,
    ];
  }
  if (state === 'released') return [`AddressLease ${name} is released already: the address cools down`];
  return [
    ...(owner === 'alive'
      ? [`${describeOwner(lease.owner)} still exists: delete it, or the VM to which it belongs`]
      : []),
    ...namedRefusals(
      mentionsIn(observed.pods, (pod) => reportedBy(pod, observed), lease.address),
      (pods, what) => `pod ${pods} reports ${what}: delete the pod, or stop its VM`,
    ),
    ...namedRefusals(
      mentionsIn(observed.claims, (claim) => shownBy(claim, observed), lease.address),
      (claims, what) =>
        what === THE_ADDRESS
          ? `IPAMClaim ${claims} has ${what} in its status and gets it back: delete its VM first`
          : `IPAMClaim ${claims} has ${what} in its status: correct or clear it, or delete the VM first`,
    ),
  ];
}

function describeOwner({ kind, namespace, name }: LeaseOwner): string {
  return `${kind} ${namespace}/${name}`;
}

/** The addresses that the pod reports on networks of the address space. */
function reportedBy(pod: Pod, { isOfSpace }: ObservedLease): string[] {
  if (isTerminal(pod)) return [];
  return networkStatuses(pod).flatMap((status) => (isOfSpace(status.name) ? reportedIPsOf(status) : []));
}

function shownBy(claim: IPAMClaim, { lease, isNetworkOfSpace }: ObservedLease): readonly string[] {
  if (claim.metadata.uid === lease.owner?.uid || !isNetworkOfSpace(claim.spec.network)) return [];
  return claim.status?.ips ?? [];
}

/** An object that has the address, or a text that cannot be read and may be the address. */
interface Mention {
  readonly name: string;
  readonly unreadable?: string;
}

function mentionsIn<T extends KubeObject>(
  objects: readonly T[],
  textsOf: (object: T) => readonly string[],
  address: Address,
): Mention[] {
  return objects.flatMap((object) => {
    const texts = textsOf(object);
    const name = objectKey(object);
    if (texts.some((text) => compare(text, address) === 'same')) return { name };
    const unreadable = texts.find((text) => compare(text, address) === 'unreadable');
    return unreadable === undefined ? [] : { name, unreadable };
  });
}

function compare(text: string, address: Address): 'same' | 'other' | 'unreadable' {
  try {
    return sameAddress(parseAddressOrPrefix(text).address, address) ? 'same' : 'other';
  } catch {
    return 'unreadable';
  }
}

function namedRefusals(mentions: readonly Mention[], describe: (names: string, what: string) => string): string[] {
  const unread = mentions.filter(({ unreadable }) => unreadable !== undefined);
  const read = mentions.filter(({ unreadable }) => unreadable === undefined);
  const value = describeValue(unread[0]?.unreadable);
  return [
    ...(read.length === 0 ? [] : [describe(shownNames(read), THE_ADDRESS)]),
    ...(unread.length === 0 ? [] : [describe(shownNames(unread), `an address that cannot be read (${value})`)]),
  ];
}

function shownNames(mentions: readonly Mention[]): string {
  const shown = mentions.slice(0, MAX_NAMED).map(({ name }) => name);
  const more = mentions.length > MAX_NAMED ? ` and ${mentions.length - MAX_NAMED} more` : '';
  return `${shown.join(', ')}${more}`;
}
