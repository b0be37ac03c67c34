import { type AddressLease, type LeaseOwner, describeLeaseOwner } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { omitUndefined } from '../../api/json.js';
import { objectKey } from '../../api/meta.js';
import { CLAIM_NAD } from '../../api/names.js';
import { type Pod, staticPodUidOf } from '../../api/pod.js';
import { formatAddress, readAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { leaseOwnerOf } from '../../addressing/lease/lease-record.js';
import {
  type LeaseRecord,
  type LeaseRequest,
  isReservation,
  readLease,
  stateOf,
} from '../../addressing/lease/lease.js';
import { readableSelectionsIn } from '../claim-users.js';
import { groupBy } from '../group-by.js';
import { reservationOf } from '../reserve.js';
import type { ActivePods } from './active-pods.js';
import type { AddressUser } from './address-users.js';
import { cniNetworksOf } from './allocations.js';
import type { SourceNad } from './nads.js';
import type { Conflict, MigrationObservation, PlannedLease } from './plan-types.js';
import type { TargetPools } from './target-pools.js';

/** The existing leases, claims and pods. */
interface ExistingObjects {
  /** By name; a string is the error of an invalid lease. */
  readonly leases: ReadonlyMap<string, LeaseRecord | string>;
  /** The claims that show an address in their status, by address space and address. */
  readonly claims: ReadonlyMap<string, readonly IPAMClaim[]>;
  readonly pods: ActivePods;
}

export function readExisting(
  { leases, claims }: Pick<MigrationObservation, 'leases' | 'claims'>,
  { pods, nads, targets }: { pods: ActivePods; nads: readonly SourceNad[]; targets: TargetPools },
): ExistingObjects {
  const read = new Map<string, LeaseRecord | string>();
  for (const lease of leases) read.set(lease.metadata.name, readLeaseOrError(lease));
  const byAddress = groupBy(claims, (claim) => {
    const addresses = (claim.status?.ips ?? []).flatMap((text) => readAddress(text) ?? []).map(formatAddress);
    if (addresses.length === 0) return [];
    const spaces = [...spacesOf(claim, nads, targets)];
    return spaces.flatMap((space) => addresses.map((address) => `${space} ${address}`));
  });
  return { leases: read, claims: byAddress, pods };
}

/** Plans the lease of an address in use, or returns the conflict that prevents it. @param clusterFlags of printed commands */
export function planLease(
  claimants: readonly AddressUser[],
  taken: ExistingObjects,
  clusterFlags: string,
): PlannedLease | Conflict | undefined {
  const [claimant, ...others] = claimants;
  if (claimant === undefined) return undefined;
  const { address, pool, nad, pod, source } = claimant;
  const subject = `${formatAddress(address)} in address space ${pool.addressSpace}`;
  const networks = cniNetworksOf(claimants.map((each) => each.nad));
  const name = leaseName(pool.addressSpace, address);
  const conflict = (kind: Conflict['kind'], message: string): Conflict => ({
    ...{ kind, subject, message, networks },
    ...(!taken.leases.has(name) && { reservation: reservationOf(pool, address) }),
  });
  if (others.length > 0) {
    const pods = claimants.map((each) => `pod ${objectKey(each.pod)} (${each.source})`).join(' and ');
    return conflict(
      'address',
      `is in use by ${pods}: delete all of these pods but one, or, if the networks are separate, set a different "addressSpace" in each NAD`,
    );
  }
  if (claimant.alternatives !== undefined) {
    const or = claimant.alternatives.map(formatAddress).join(' or ');
    return conflict(
      'address',
      `belongs to pod ${objectKey(pod)} (${source}), or ${or} does: the others belonged to an earlier pod of that name, and this pod has not reported its address yet. Run this command again when the pod is running, or delete the pod`,
    );
  }
  const claims = taken.claims.get(`${pool.addressSpace} ${formatAddress(address)}`) ?? [];
  const other = claims.find((each) => !isPodOfClaim(claimant, each));
  if (other !== undefined) {
    const shows = `IPAMClaim ${objectKey(other)} shows it`;
    return conflict(
      'claim',
      `is in use by pod ${objectKey(pod)}, but ${shows}: delete the pod, or the VM of that claim`,
    );
  }
  const request = leaseRequestOf(claimant, claims[0]);
  const planned = { request, name, network: nad.network, nad: nad.key, pod: podOwnerOf(pod), source };
  const record = taken.leases.get(name);
  if (record === undefined) return { ...planned, state: 'create' };
  if (typeof record === 'string') return conflict('lease', `its lease is invalid: ${record}`);
  const state = stateOfLease(record, request, taken.pods);
  if (state !== undefined) return { ...planned, state, record };
  return conflict('lease', `is in use by pod ${objectKey(pod)}, and ${describeLeaseHolder(record, clusterFlags)}`);
}

/** Undefined where somebody else has it who may live, or it is kept for somebody else. */
export function stateOfLease(
  record: LeaseRecord,
  request: LeaseRequest,
  pods: Pick<ActivePods, 'has'>,
): 'done' | 'replace' | undefined {
  const { metadata, owner, mac, pool } = record;
  if (metadata.deletionTimestamp !== undefined) return undefined;
  const state = stateOf(record);
  if (state === 'held' && owner?.uid === request.owner.uid) return 'done';
  if (state === 'quarantined') return undefined;
  if (isReservation(record) && !(mac !== undefined && mac === request.mac && pool === request.pool)) return undefined;
  return state !== 'held' || isOwnerGone(record, pods) ? 'replace' : undefined;
}

/** An earlier run created the lease, and whereabouts has allocated the address to another pod since. */
function isOwnerGone({ owner }: LeaseRecord, pods: Pick<ActivePods, 'has'>): boolean {
  return owner?.kind === 'Pod' && !pods.has(owner);
}

export function describeLeaseHolder(record: LeaseRecord, clusterFlags: string): string {
  const { metadata, owner, quarantine } = record;
  const lease = `AddressLease ${metadata.name}`;
  if (metadata.deletionTimestamp !== undefined) return `${lease} is being deleted: wait until it is gone`;
  if (quarantine !== undefined)
    return `${lease} is quarantined, because ${quarantine.mac} has it: if that is the pod, run kubectl delete alease ${metadata.name}${clusterFlags}; else delete the pod`;
  if (owner === undefined || isReservation(record))
    return `${lease} reserves it: remove the reservation (kubectl holdfast unreserve ${record.pool} ${formatAddress(record.address)}${clusterFlags}), or delete the pod`;
  return `${lease} is held by ${describeLeaseOwner(owner)} (uid ${owner.uid}): delete one of the two`;
}

function leaseRequestOf(claimant: AddressUser, claim: IPAMClaim | undefined): LeaseRequest {
  const { address, pool, pod, containerID, interface: podInterface, mac } = claimant;
  const of = { address, addressSpace: pool.addressSpace, pool: pool.name };
  // a claim's lease names no node because its VM may move
  if (claim !== undefined) return { ...of, owner: leaseOwnerOf(claim) };
  const node = pod.spec?.nodeName;
  const reported = omitUndefined({ containerID, interface: podInterface, mac });
  return { ...of, owner: podOwnerOf(pod), ...(node && { node }), ...reported };
}

function podOwnerOf(pod: Pod): LeaseOwner {
  const { namespace = '', name, uid = '' } = pod.metadata;
  return { kind: 'Pod', namespace, name, uid: staticPodUidOf(pod) ?? uid };
}

function isPodOfClaim({ pod, claim: held, interface: podInterface }: AddressUser, claim: IPAMClaim): boolean {
  if (pod.metadata.namespace !== claim.metadata.namespace) return false;
  if (held === objectKey(claim) || claim.status?.ownerPod?.name === pod.metadata.name) return true;
  return readableSelectionsIn(pod).some(
    ({ claimReference, interface: asked }) =>
      claimReference === claim.metadata.name &&
      (podInterface === undefined || (asked ?? podInterface) === podInterface),
  );
}

/** Returns the address spaces of the pools that can serve the claim: by its NAD, else by its namespace, else by its network. */
function spacesOf({ metadata, spec }: IPAMClaim, nads: readonly SourceNad[], targets: TargetPools): Set<string> {
  const { namespace = '' } = metadata;
  const of = nads.filter(({ network }) => network === spec.network);
  const made = of.filter(({ key }) => key === metadata.annotations?.[CLAIM_NAD]);
  const near = of.filter((nad) => nad.namespace === namespace);
  const serving = [made, near, of].find(({ length }) => length > 0) ?? [];
  return new Set(serving.flatMap((nad) => targets.serving(nad, namespace)?.addressSpace ?? []));
}

function readLeaseOrError(lease: AddressLease): LeaseRecord | string {
  try {
    return readLease(lease);
  } catch (error) {
    if (error instanceof TypeError) return error.message;
    throw error;
  }
}
