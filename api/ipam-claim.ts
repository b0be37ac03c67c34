import {
  type Condition,
  type KubeObject,
  type OwnerReference,
  MAX_NAME_LENGTH,
  controllerOf,
  isObjectName,
} from './meta.js';
import { isKubeVirtGroup } from './kubevirt.js';
import {
  CLAIM_FINALIZER,
  CLAIM_GUEST_MAC,
  CLAIM_MAC,
  CLAIM_MAC_SINCE,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_VM_LABEL,
  CLAIM_VM_NETWORK,
  VIRTUAL_MACHINE_INSTANCE_KIND,
  VIRTUAL_MACHINE_KIND,
  shortHash,
} from './names.js';
import { parseMac } from './mac-address.js';

/** IPAMClaim, k8s.cni.cncf.io/v1alpha1 (multi-net-spec §8; `ownerPod` and `conditions` from k8snetworkplumbingwg/ipamclaims). */
export interface IPAMClaim extends KubeObject {
  spec: {
    /** The CNI network's name. */
    network: string;
    /** The name of the pod's interface, for information only. */
    interface: string;
  };
  status?: {
    /** Addresses with prefix length, IPv4 first. Absent if another IPAM wrote the status and its CRD does not require the field. */
    ips?: string[];
    ownerPod?: { name: string };
    conditions?: Condition[];
  };
}

const MAX_LABEL = 63;
const HASH_DIGITS = 10;
const HASH_SUFFIX = new RegExp(`-[0-9a-f]{${String(HASH_DIGITS)}}$`);

/**
 * Returns the name of the claim of one VM interface: `<vm>.<network>`, with the network's name in the VM's spec. If that is not a valid name,
 * or could be the name of another pair, a hash of the exact pair is appended, so that no two pairs share a name.
 */
export function claimName(vm: string, vmNetwork: string): string {
  const plain = `${vm}.${vmNetwork}`;
  // with a dot in the network, ("a", "b.c") and ("a.b", "c") would share a name; KubeVirt allows none, but a restored object may have one
  const unambiguous = !vmNetwork.includes('.') && !looksHashed(plain);
  if (unambiguous && isObjectName(plain)) return plain;
  return appendHash(plain, `${vm}\n${vmNetwork}`);
}

/** Returns the name of a second claim of the interface, for use while the first claim is for another CNI network (NAD swap). */
export function swappedClaimName(vm: string, vmNetwork: string, cniNetwork: string): string {
  return appendHash(claimName(vm, vmNetwork), `${vm}\n${vmNetwork}\n${cniNetwork}`);
}

/** Returns a label value for any name: names over 63 characters are cut and hashed. */
export function labelValue(name: string): string {
  return name.length <= MAX_LABEL ? name : hashedLabelValue(name);
}

/** Returns a cut and hashed label value for a name of any length. */
export function hashedLabelValue(name: string): string {
  return joinWithinLimit(name, shortHash(name, HASH_DIGITS), MAX_LABEL);
}

export function looksHashed(name: string): boolean {
  return HASH_SUFFIX.test(name);
}

function appendHash(readable: string, exact: string): string {
  const labels = readable
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .split('.')
    // the lookbehind keeps the time in proportion to the length, which tenants choose
    .map((label) => label.replace(/^-+|(?<!-)-+$/g, ''))
    .filter((label) => label !== '');
  return joinWithinLimit(labels.join('.'), shortHash(exact, HASH_DIGITS), MAX_NAME_LENGTH);
}

function joinWithinLimit(readable: string, hash: string, max: number): string {
  const head = readable.slice(0, max - hash.length - 1).replace(/^[-.]+|[-.]+$/g, '');
  return head === '' ? hash : `${head}-${hash}`;
}

/** Returns the addresses in the claim's status as text, without prefix length. */
export function addressTextsOf({ status }: IPAMClaim): string[] {
  return (status?.ips ?? []).map((ip) => ip.replace(/\/.*/, ''));
}

/** The owner of a claim: a VirtualMachine, or a VMI without a VM. */
export interface ClaimOwner {
  kind: typeof VIRTUAL_MACHINE_KIND | typeof VIRTUAL_MACHINE_INSTANCE_KIND;
  name: string;
  uid: string;
}

/**
 * Returns the owner of a claim: its controller, or the owner noted in its annotations if the garbage collector removed the reference
 * (`--cascade=orphan`). Undefined for a claim that never had an owner.
 */
export function claimOwnerOf(claim: IPAMClaim): { name: string; uid: string } | undefined {
  const controller = controllerOf(claim);
  if (controller !== undefined) return { name: controller.name, uid: controller.uid };
  const name = claim.metadata.annotations?.[CLAIM_OWNER_NAME];
  const uid = claim.metadata.annotations?.[CLAIM_OWNER_UID];
  return name === undefined || uid === undefined ? undefined : { name, uid };
}

/**
 * Returns the name of the VM or VMI of a claim. A claim without an owner but with our finalizer was created by kubevirt/ipam-extensions and lost its
 * owner to the garbage collector: its label names the VM.
 */
export function workloadNameOf(claim: IPAMClaim): string | undefined {
  const { labels, finalizers } = claim.metadata;
  const label = finalizers?.includes(CLAIM_FINALIZER) ? labels?.[CLAIM_VM_LABEL] : undefined;
  return claimOwnerOf(claim)?.name ?? label;
}

/** True if the claim's controller is a KubeVirt object, or its annotations name one. */
export function isWorkloadClaim(claim: IPAMClaim): boolean {
  const controller: OwnerReference | undefined = controllerOf(claim);
  if (controller === undefined) return claim.metadata.annotations?.[CLAIM_OWNER_UID] !== undefined;
  const kinds: string[] = [VIRTUAL_MACHINE_KIND, VIRTUAL_MACHINE_INSTANCE_KIND];
  return kinds.includes(controller.kind) && isKubeVirtGroup(controller.apiVersion);
}

/** Returns the name of the claim's network in the VM's spec; derived from the claim's name for claims of ipam-extensions. */
export function claimVmNetworkOf(claim: IPAMClaim): string | undefined {
  const noted = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
  if (noted !== undefined) return noted;
  const owner = claimOwnerOf(claim);
  const prefix = owner === undefined ? undefined : `${owner.name}.`;
  return prefix !== undefined && claim.metadata.name.startsWith(prefix)
    ? claim.metadata.name.slice(prefix.length)
    : undefined;
}

/** Returns `namespace/name` of the NAD for which the claim was created, if it is known. */
export function claimNadOf(claim: IPAMClaim): string | undefined {
  return claim.metadata.annotations?.[CLAIM_NAD];
}

/** Returns the MAC address of the interface in the VM's spec: lower case, with colons. */
export function claimMacOf(claim: IPAMClaim): string | undefined {
  return parseMac(claim.metadata.annotations?.[CLAIM_MAC] ?? '');
}

/** Returns the MAC address of the running guest's interface: lower case, with colons. */
export function claimGuestMacOf(claim: IPAMClaim): string | undefined {
  return parseMac(claim.metadata.annotations?.[CLAIM_GUEST_MAC] ?? '');
}

/** Returns the MAC address that the controller recorded last: that of the running guest, or of the spec. */
export function recordedMacOf(claim: IPAMClaim): string | undefined {
  return claimGuestMacOf(claim) ?? claimMacOf(claim);
}

/**
 * Returns the MAC address whose time the claim records.
 * @returns undefined if the claim records none, because it has had its MAC address since it was created or has none; empty if the record is invalid
 */
export function timedMacOf(claim: IPAMClaim): string | undefined {
  const text = claim.metadata.annotations?.[CLAIM_MAC_SINCE];
  return text === undefined ? undefined : (parseMac(text.split(' ', 1)[0] ?? '') ?? '');
}

/** Returns the record of {@link CLAIM_MAC_SINCE}: MAC address, space, RFC 3339. @param since milliseconds since the epoch */
export function macSinceText(mac: string, since: number): string {
  return `${mac} ${new Date(since).toISOString()}`;
}

/**
 * Returns since when the claim has a MAC address, in milliseconds since the epoch; Infinity if that is not recorded. It is never earlier than the
 * claim, whatever a restored annotation says.
 */
export function macHeldSince(claim: IPAMClaim, mac: string): number {
  const created = Date.parse(claim.metadata.creationTimestamp ?? '') || 0;
  const timed = timedMacOf(claim);
  if (timed === undefined) return recordedMacOf(claim) === mac ? created : Infinity;
  const since = Date.parse(claim.metadata.annotations?.[CLAIM_MAC_SINCE]?.split(' ', 2)[1] ?? '');
  return timed !== mac || Number.isNaN(since) ? Infinity : Math.max(since, created);
}

/** The number of IPAMClaims of a namespace, in the quantities of a ResourceQuota. */
export const CLAIM_COUNT = 'count/ipamclaims.k8s.cni.cncf.io';
