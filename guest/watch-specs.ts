import { NETWORK_INDEXES } from '../addressing/directory/affected.js';
import { type LeaseRecord, readLease, stateOf } from '../addressing/lease/lease.js';
import type { AddressLease } from '../api/address-lease.js';
import { type IPAMClaim, claimNadOf } from '../api/ipam-claim.js';
import { omitUndefined, truncate } from '../api/json.js';
import type {
  VirtualMachine,
  VirtualMachineInstance,
  VmInterface,
  VmVolume,
  VmiInterfaceStatus,
  VmiSpec,
} from '../api/kubevirt.js';
import { MAX_GUEST_TEXT_LENGTH, MAX_REPORTED_ADDRESSES, MAX_VM_NETWORKS } from '../api/limits.js';
import { type ObjectMeta, joinKey } from '../api/meta.js';
import {
  DEFAULT_ROUTE_ANNOTATION,
  GUEST_SERVED,
  IPAM_CLAIM_KIND,
  LEASE_OWNER_KIND,
  NETWORK_DATA_ANNOTATION,
} from '../api/names.js';
import { conditionOf } from '../cluster/claim-conditions.js';
import { datedMetadataOf } from '../cluster/metadata.js';
import { BY_NAD, BY_WORKLOAD, CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from '../cluster/watch-specs.js';
import type { WatchSpec } from '../kube/informers/informers.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../kube/resources.js';
import { boundedDhcpOptions } from './dhcp-options.js';
import { secretRefOf } from './network-data/request.js';

/** Watches with fields that only this process reads, so that other processes do not see their changes. */

/** VMs and VMIs by the `namespace/name` of the Secret in their cloud-init volume. */
export const BY_SECRET = 'secret';

export const GUEST_VMS: WatchSpec<VirtualMachine> = {
  resource: VIRTUAL_MACHINES,
  transform: transformGuestVm,
  indexes: { ...VM_INDEXES, [BY_SECRET]: secretKeysOf },
  optional: true,
};

export const GUEST_VMIS: WatchSpec<VirtualMachineInstance> = {
  resource: VIRTUAL_MACHINE_INSTANCES,
  transform: transformGuestVmi,
  indexes: { ...VMI_INDEXES, [BY_SECRET]: secretKeysOf },
  optional: true,
};

/** Claims with the condition GuestServed by their network, which may have thousands of claims without it. */
export const BY_NOT_SERVED = 'not-served';

/** With those of claims by the NAD that they name. */
export const GUEST_CLAIM_INDEXES = {
  ...CLAIM_INDEXES,
  ...NETWORK_INDEXES,
  [BY_NOT_SERVED]: (claim: IPAMClaim) => (conditionOf(claim, GUEST_SERVED) === undefined ? [] : [claim.spec.network]),
  [BY_NAD]: (claim: IPAMClaim) => [claimNadOf(claim) ?? []].flat(),
};

export const GUEST_CLAIMS: WatchSpec<IPAMClaim> = {
  resource: IPAM_CLAIMS,
  transform: transformGuestClaim,
  indexes: GUEST_CLAIM_INDEXES,
  optional: true,
};

/** Leases whose addresses a Secret may hold, by the key of the VM that owns it. */
export const LOCKED_LEASES: WatchSpec<AddressLease, LeaseRecord> = {
  resource: ADDRESS_LEASES,
  fieldSelector: 'spec.networkData.secret!=',
  transform: readLease,
  indexes: { [BY_WORKLOAD]: workloadOfLock },
};

/** Index of the leases for which ipam requests a probe, by their pool. */
export const BY_PROBED_POOL = 'probed-pool';

/** Leases of claims. Those of pods, which change most often, are not sent. */
export const CLAIM_LEASES: WatchSpec<AddressLease, LeaseRecord> = {
  resource: ADDRESS_LEASES,
  labelSelector: `${LEASE_OWNER_KIND}=${IPAM_CLAIM_KIND}`,
  transform: readLease,
  indexes: { [BY_PROBED_POOL]: probedPoolOf },
};

export function probedPoolOf(lease: LeaseRecord): string[] {
  const { probe, owner, pool } = lease;
  return probe === 'requested' && owner?.kind === 'IPAMClaim' && stateOf(lease) === 'held' ? [pool] : [];
}

export function workloadOfLock({ networkData }: LeaseRecord): string[] {
  return networkData === undefined ? [] : [joinKey(networkData.namespace, networkData.owner.name)];
}

export function secretKeysOf({ metadata, spec }: VirtualMachine | VirtualMachineInstance): string[] {
  const { template, ...own } = (spec ?? {}) as { template?: { spec?: VmiSpec } } & VmiSpec;
  const name = secretRefOf(template === undefined ? own : template.spec)?.name;
  return name === undefined ? [] : [joinKey(metadata.namespace, name)];
}

/** Transforms of objects before this process caches them. Fields that are not named here are dropped. */

/** Of an address in any notation. */
const MAX_ADDRESS_LENGTH = 45;
const PRESENT = Object.freeze({});

export function transformGuestVm({ metadata, spec }: VirtualMachine): VirtualMachine {
  const small: VirtualMachine = { metadata: datedMetadataOf(metadata) };
  const template = spec?.template;
  if (template?.spec === undefined) return small;
  const annotations = guestAnnotations(template.metadata?.annotations);
  const kept = annotations && { metadata: { annotations } };
  return { ...small, spec: { template: { ...kept, spec: transformGuestSpec(template.spec) } } };
}

export function transformGuestVmi({ metadata, spec, status }: VirtualMachineInstance): VirtualMachineInstance {
  const { ownerReferences } = metadata;
  const annotations = guestAnnotations(metadata.annotations);
  const interfaces = (status?.interfaces ?? []).slice(0, MAX_VM_NETWORKS).map(transformReported);
  return {
    metadata: { ...datedMetadataOf(metadata), ...omitUndefined({ ownerReferences, annotations }) },
    ...(spec && { spec: transformGuestSpec(spec) }),
    status: { ...(status?.phase !== undefined && { phase: status.phase }), interfaces },
  };
}

/** Keeps the whole status, because its conditions are written back as one list. */
function transformGuestClaim(claim: IPAMClaim): IPAMClaim {
  const { managedFields: _dropped, ...metadata } = claim.metadata as ObjectMeta & { managedFields?: unknown };
  return { ...claim, metadata };
}

function guestAnnotations(all: Record<string, string | null> = {}): Record<string, string> | undefined {
  const found = [NETWORK_DATA_ANNOTATION, DEFAULT_ROUTE_ANNOTATION].flatMap((key) => {
    const text = all[key];
    return text === undefined ? [] : [[key, truncate(text ?? '', MAX_GUEST_TEXT_LENGTH)]];
  });
  return found.length === 0 ? undefined : (Object.fromEntries(found) as Record<string, string>);
}

/** Unlike in other processes, every interface is kept: a guest must know all of them. */
function transformGuestSpec({ networks = [], domain, volumes = [], hostname, subdomain }: VmiSpec): VmiSpec {
  const interfaces = domain?.devices?.interfaces ?? [];
  const disk = volumes.find(({ cloudInitNoCloud, cloudInitConfigDrive }) => cloudInitNoCloud ?? cloudInitConfigDrive);
  return omitUndefined({
    hostname: bounded(hostname),
    subdomain: bounded(subdomain),
    networks: networks
      .slice(0, MAX_VM_NETWORKS)
      .map(({ name, multus, pod }) =>
        omitUndefined({
          name,
          multus: multus && omitUndefined({ networkName: multus.networkName, default: multus.default }),
          pod: pod && PRESENT,
        }),
      ),
    domain: { devices: { interfaces: interfaces.slice(0, MAX_VM_NETWORKS).map(transformInterface) } },
    volumes: disk && [transformDisk(disk)],
  });
}

function bounded(text: string | undefined): string | undefined {
  return text === undefined ? undefined : truncate(text, MAX_GUEST_TEXT_LENGTH);
}

function transformInterface({ name, state, macAddress, sriov, dhcpOptions }: VmInterface): VmInterface {
  return omitUndefined({
    name,
    state,
    macAddress: bounded(macAddress),
    sriov: sriov && PRESENT,
    dhcpOptions: dhcpOptions && boundedDhcpOptions(dhcpOptions),
  });
}

function transformDisk({ cloudInitNoCloud, cloudInitConfigDrive }: VmVolume): VmVolume {
  const { name } = (cloudInitNoCloud ?? cloudInitConfigDrive)?.networkDataSecretRef ?? {};
  const source = name === undefined ? PRESENT : { networkDataSecretRef: { name: bounded(name) } };
  return cloudInitNoCloud === undefined ? { cloudInitConfigDrive: source } : { cloudInitNoCloud: source };
}

function transformReported({ name, mac, infoSource, ipAddresses = [] }: VmiInterfaceStatus): VmiInterfaceStatus {
  return omitUndefined({
    name: bounded(name),
    mac: bounded(mac),
    infoSource: bounded(infoSource),
    ipAddresses: ipAddresses.slice(0, MAX_REPORTED_ADDRESSES).map((text) => truncate(text, MAX_ADDRESS_LENGTH)),
  });
}
