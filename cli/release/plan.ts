import type { LeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { objectKey } from '../../api/meta.js';
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
    ...namedRefusal(
      observed.pods.filter((pod) => !isTerminal(pod) && usesAddress(pod, observed)).map(objectKey),
      (pods) => `pod ${pods} reports the address: delete the pod, or stop its VM`,
    ),
    ...namedRefusal(
      observed.claims.filter((claim) => wantsAddress(claim, observed)).map(objectKey),
      (claims) => `IPAMClaim ${claims} has the address in its status and gets it back: delete its VM first`,
    ),
  ];
}

function describeOwner({ kind, namespace, name }: LeaseOwner): string {
  return `${kind} ${namespace}/${name}`;
}

/** True if the pod reports the address on a network of the address space. A report that cannot be read may contain it. */
function usesAddress(pod: Pod, { lease, isOfSpace }: ObservedLease): boolean {
  return networkStatuses(pod).some(
    (status) => isOfSpace(status.name) && reportedIPsOf(status).some((text) => isAddress(text, lease.address)),
  );
}

function wantsAddress(claim: IPAMClaim, { lease, isNetworkOfSpace }: ObservedLease): boolean {
  if (claim.metadata.uid === lease.owner?.uid || !isNetworkOfSpace(claim.spec.network)) return false;
  return (claim.status?.ips ?? []).some((text) => isAddress(text, lease.address));
}

function isAddress(text: string, address: Address): boolean {
  try {
    return sameAddress(parseAddressOrPrefix(text).address, address);
  } catch {
    return true;
  }
}

function namedRefusal(names: readonly string[], describe: (names: string) => string): string[] {
  if (names.length === 0) return [];
  const more = names.length > MAX_NAMED ? ` and ${names.length - MAX_NAMED} more` : '';
  return [describe(`${names.slice(0, MAX_NAMED).join(', ')}${more}`)];
}
