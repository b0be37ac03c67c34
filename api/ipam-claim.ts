import type { Condition, KubeObject, OwnerReference } from './meta.js';
import { controllerOf } from './meta.js';
import { isKubeVirtGroup } from './kubevirt.js';
import { shortHash } from './hash.js';
import { parseMac } from './mac-address.js';
import {
  CLAIM_MAC,
  CLAIM_NAD,
  CLAIM_OWNER_NAME,
  CLAIM_OWNER_UID,
  CLAIM_VM_NETWORK,
  VIRTUAL_MACHINE_INSTANCE_KIND,
  VIRTUAL_MACHINE_KIND,
} from './names.js';

/** IPAMClaim, k8s.cni.cncf.io/v1alpha1 (multi-net-spec §8; `ownerPod` and `conditions` from k8snetworkplumbingwg/ipamclaims). */
export interface IPAMClaim extends KubeObject {
  spec: {
    /** The CNI network's name. */
    network: string;
    /** The name of the pod's interface; descriptive. */
    interface: string;
  };
  status?: {
    /** Addresses with prefix length, IPv4 first. Absent if another IPAM wrote the status and its CRD does not require them. */
    ips?: string[];
    ownerPod?: { name: string };
    conditions?: Condition[];
  };
}

const MAX_NAME = 253;
const MAX_LABEL = 63;
const HASH_DIGITS = 10;
const DNS_1123_SUBDOMAIN = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const HASH_SUFFIX = new RegExp(`-[0-9a-f]{${String(HASH_DIGITS)}}$`);

/**
 * The name of the claim of one VM interface: `<vm>.<network>`, with the network's name in the VM's spec.
 * Where that is not a valid name, or could be read as that of another pair, a hash of the exact pair is appended, so
 * that no two pairs share a name.
 */
export function claimName(vm: string, vmNetwork: string): string {
  const plain = `${vm}.${vmNetwork}`;
  // a dot in the network would make ("a", "b.c") and ("a.b", "c") one name; KubeVirt allows none, a restored object might
  const unambiguous = !vmNetwork.includes('.') && !looksHashed(plain);
  if (unambiguous && plain.length <= MAX_NAME && DNS_1123_SUBDOMAIN.test(plain)) return plain;
  return appendHash(plain, `${vm}\n${vmNetwork}`);
}

/** The name of a second claim of the interface, while the first one is for another CNI network (a swapped NAD). */
export function swappedClaimName(vm: string, vmNetwork: string, cniNetwork: string): string {
  return appendHash(claimName(vm, vmNetwork), `${vm}\n${vmNetwork}\n${cniNetwork}`);
}

/** A label value for any name: names over 63 characters are cut and hashed. */
export function labelValue(name: string): string {
  return name.length <= MAX_LABEL ? name : hashedLabelValue(name);
}

/** Such a label value whatever the length. */
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
    .map((label) => label.replace(/^-+|-+$/g, ''))
    .filter((label) => label !== '');
  return joinWithinLimit(labels.join('.'), shortHash(exact, HASH_DIGITS), MAX_NAME);
}

function joinWithinLimit(readable: string, hash: string, max: number): string {
  const head = readable.slice(0, max - hash.length - 1).replace(/^[-.]+|[-.]+$/g, '');
  return head === '' ? hash : `${head}-${hash}`;
}

/** Who a claim is for: a VirtualMachine, or a VMI that has none. */
export interface ClaimOwner {
  kind: typeof VIRTUAL_MACHINE_KIND | typeof VIRTUAL_MACHINE_INSTANCE_KIND;
  name: string;
  uid: string;
}

/**
 * The owner that a claim has: its controller, or what it remembers of it where the garbage collector took the reference away
 * (`--cascade=orphan`). Undefined for a claim that nobody ever owned.
 */
export function claimOwnerOf(claim: IPAMClaim): { name: string; uid: string } | undefined {
  const controller = controllerOf(claim);
  if (controller !== undefined) return { name: controller.name, uid: controller.uid };
  const name = claim.metadata.annotations?.[CLAIM_OWNER_NAME];
  const uid = claim.metadata.annotations?.[CLAIM_OWNER_UID];
  return name === undefined || uid === undefined ? undefined : { name, uid };
}

/** True where the claim's controller is a KubeVirt object, or is remembered as one. */
export function isWorkloadClaim(claim: IPAMClaim): boolean {
  const controller: OwnerReference | undefined = controllerOf(claim);
  if (controller === undefined) return claim.metadata.annotations?.[CLAIM_OWNER_UID] !== undefined;
  const kinds: string[] = [VIRTUAL_MACHINE_KIND, VIRTUAL_MACHINE_INSTANCE_KIND];
  return kinds.includes(controller.kind) && isKubeVirtGroup(controller.apiVersion);
}

/** The name that the claim's network has in the VM's spec; guessed from the claim's name for claims made by ipam-extensions. */
export function claimVmNetworkOf(claim: IPAMClaim): string | undefined {
  const noted = claim.metadata.annotations?.[CLAIM_VM_NETWORK];
  if (noted !== undefined) return noted;
  const owner = claimOwnerOf(claim);
  const prefix = owner === undefined ? undefined : `${owner.name}.`;
  return prefix !== undefined && claim.metadata.name.startsWith(prefix)
    ? claim.metadata.name.slice(prefix.length)
    : undefined;
}

/** `namespace/name` of the NAD for which the claim was made, where it is known. */
export function claimNadOf(claim: IPAMClaim): string | undefined {
  return claim.metadata.annotations?.[CLAIM_NAD];
}

/** The MAC address that the VM's spec names for the interface: lower case, with colons. */
export function claimMacOf(claim: IPAMClaim): string | undefined {
  return parseMac(claim.metadata.annotations?.[CLAIM_MAC] ?? '');
}
