import { type IPAMClaim, claimNadOf, claimOwnerOf, isWorkloadClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted } from '../../../api/meta.js';
import { AllocationReason, type RefusalReason } from '../../../api/names.js';
import { claimInterfaces } from '../../../api/vm-claims.js';
import {
  type Address,
  FAMILIES,
  formatAddress,
  formatAddresses,
  sameAddress,
} from '../../../addressing/address/address.js';
import type { AllocationRefusal } from '../../../addressing/allocator/allocator.js';
import { type LeaseRecord, isHeldByPod } from '../../../addressing/lease/lease.js';
import { type Pool, isLeasable } from '../../../addressing/pool/pool.js';
import { parseAddressList, readShownAddresses } from '../shown/claim-addresses.js';
import type { ClaimPod } from './claim-pods.js';
import { unpackInterfaces } from './reported-interfaces.js';
import type { LauncherVmis } from './vmi-owners.js';

/** The addresses with which the claim's VM runs although the claim does not show them: its launcher got them without the claim. */
export type RunningAddresses =
  | { kind: 'none' }
  /** `launchers`: the UIDs of the pods that have them. */
  | { kind: 'addresses'; addresses: readonly Address[]; launchers: ReadonlySet<string> }
  /** The VMIs of launchers with addresses must be read. */
  | { kind: 'unverified'; uids: readonly string[] }
  /** A VMI could not be read. */
  | { kind: 'unknown'; reason: string }
  /** The claim cannot have them. It gets no others while the VM runs, because its next launcher would change the VM's address. */
  | { kind: 'refused'; refusal: AllocationRefusal };

interface RunningInput {
  claim: IPAMClaim;
  pods: readonly ClaimPod[];
  launcherVmis: LauncherVmis;
  /** The pool that serves the claim. */
  pool: Pool;
  /** Held leases of the claim. */
  held: readonly LeaseRecord[];
  /** Returns the leases of a pod's UID, in any state. */
  leasesOf: (uid: string) => readonly LeaseRecord[];
}

const NONE: RunningAddresses = { kind: 'none' };

/**
 * Returns the addresses that launchers have on the claim's interface. Multus reports them, or the launcher's leases show them before. A report gives no right to
 * an address: the claim must be able to lease it, and takes over only leases of launchers of its own VM.
 *
 * A claim that shows other addresses changes them only if it has one pod, and the pod or the claim holds leases of all that the pod reports.
 */
export function runningAddressesOf(input: RunningInput): RunningAddresses {
  const { claim, pods } = input;
  if (!isWorkloadClaim(claim) || isBeingDeleted(claim)) return NONE;
  const shows = readShownAddresses(claim);
  const isNew = shows.addresses.length === 0 && shows.problem === undefined;
  if (!isNew && pods.length > 1) return NONE;
  const attached = pods.flatMap((pod) => attachmentOf(pod, input) ?? []);
  if (isNew) return evaluate(attached, input);
  const others = attached.filter((attachment) => hasOthers(attachment, shows.addresses, input));
  const found = evaluate(others, input);
  return found.kind === 'addresses' || found.kind === 'unverified' ? found : NONE;
}

/** A launcher that has addresses on the claim's interface. */
interface Attachment {
  pod: ClaimPod;
  /** As Multus reports them. */
  reported: readonly string[];
  /** Those that it holds for the interface. */
  leases: readonly LeaseRecord[];
}

function attachmentOf(pod: ClaimPod, { claim, pool, leasesOf }: RunningInput): Attachment | undefined {
  if (pod.vmi === undefined || pod.vmi.name !== claimOwnerOf(claim)?.name) return undefined;
  const nad = claimNadOf(claim);
  const names = claimInterfaces(claim);
  const isOfClaim = (name: string | undefined) => name !== undefined && names.has(name);
  const reports = unpackInterfaces(pod.interfaces).filter(({ name }) => isOfClaim(name));
  const ours = reports.filter((each) => nad === undefined || each.nad === nad);
  // the VM moves to the claim's NAD, and this launcher is still on the former one
  if (reports.length > 0 && ours.length === 0) return undefined;
  const reported = ours.flatMap(({ ips }) => ips);
  // an earlier address space of the pool, and an earlier pool of the address space, are of the same network
  const isOfNetwork = (lease: LeaseRecord) => lease.pool === pool.name || lease.addressSpace === pool.addressSpace;
  const leases = leasesOf(pod.metadata.uid ?? '').filter(
    (lease) => isHeldByPod(lease) && isOfClaim(lease.interface) && isOfNetwork(lease),
  );
  return reported.length + leases.length === 0 ? undefined : { pod, reported, leases };
}

/** True if the pod reports other addresses of the families that the claim shows, and the pod or the claim holds a lease of each. */
function hasOthers({ reported, leases }: Attachment, shown: readonly Address[], { held, pool }: RunningInput): boolean {
  const read = parseAddressList(reported);
  if (!read.ok || read.addresses.length !== shown.length || formatAddresses(read.addresses) === formatAddresses(shown))
    return false;
  const known = [...leases, ...held].filter((lease) => lease.addressSpace === pool.addressSpace);
  return read.addresses.every(
    (address, index) =>
      address.family === shown[index]?.family && known.some((lease) => sameAddress(lease.address, address)),
  );
}

function evaluate(attachments: readonly Attachment[], { launcherVmis, pool }: RunningInput): RunningAddresses {
  if (attachments.length === 0) return NONE;
  const doubt = doubtAbout(attachments, launcherVmis);
  if (doubt !== undefined) return doubt;
  const verified = attachments.filter(({ pod }) => launcherVmis.verifiedPods.has(pod.metadata.uid ?? ''));
  return verified.length === 0 ? NONE : commonAddresses(verified, pool);
}

/** @returns why it is not known to which VM the launchers belong; undefined if it is */
function doubtAbout(
  attachments: readonly Attachment[],
  { problem, vmisToRead, unreadableVmis }: LauncherVmis,
): RunningAddresses | undefined {
  if (problem !== undefined)
    return refuse(AllocationReason.Internal, `the addresses of a running pod cannot be verified: ${problem}`);
  const vmis = attachments.flatMap(({ pod }) => pod.vmi?.uid ?? []);
  const uids = vmis.filter((uid) => vmisToRead.has(uid));
  if (uids.length > 0) return { kind: 'unverified', uids };
  return vmis.some((uid) => unreadableVmis.has(uid))
    ? { kind: 'unknown', reason: 'the VMI of a launcher that has addresses cannot be read' }
    : undefined;
}

function commonAddresses(attachments: readonly Attachment[], pool: Pool): RunningAddresses {
  const found: { addresses: readonly Address[]; name: string; uid: string }[] = [];
  for (const { pod, reported, leases } of attachments) {
    const { name, uid = '' } = pod.metadata;
    const read =
      reported.length > 0 ? parseAddressList(reported) : { ok: true as const, addresses: firstOfFamilies(leases) };
    if (!read.ok)
      return refuse(
        AllocationReason.InvalidRequest,
        `pod ${name} has addresses that no claim can hold: ${read.problem}`,
      );
    const outside = read.addresses.find((address) => !isLeasable(pool, address));
    if (outside !== undefined) {
      const remedy = 'add it to the pool to keep it, or restart the VM to get another one';
      const message = `pod ${name} runs with ${formatAddress(outside)}, which pool ${pool.name} does not lease: ${remedy}`;
      return refuse(AllocationReason.OutOfRange, message);
    }
    found.push({ addresses: read.addresses, name, uid });
  }
  const [first, ...others] = found;
  if (first === undefined) return NONE;
  const other = others.find(({ addresses }) => formatAddresses(addresses) !== formatAddresses(first.addresses));
  if (other !== undefined) {
    const message =
      `pod ${first.name} runs with ${formatAddresses(first.addresses)}, and pod ${other.name} with ${formatAddresses(other.addresses)}: ` +
      'the claim gets the addresses of the one that remains';
    return refuse(AllocationReason.Conflict, message);
  }
  return { kind: 'addresses', addresses: first.addresses, launchers: new Set(found.map(({ uid }) => uid)) };
}

/** Returns the first address of each family, IPv4 first. */
function firstOfFamilies(leases: readonly LeaseRecord[]): readonly Address[] {
  const addresses = leases.map(({ address }) => address);
  return FAMILIES.flatMap((family) => addresses.find((address) => address.family === family) ?? []);
}

function refuse(reason: RefusalReason, message: string): RunningAddresses {
  return { kind: 'refused', refusal: { reason, message } };
}
