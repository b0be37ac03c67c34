import type { IPAMClaim } from '../api/ipam-claim.js';
import type {
  VirtualMachine,
  VirtualMachineInstance,
  VmInterface,
  VmVolume,
  VmiInterfaceStatus,
  VmiSpec,
} from '../api/kubevirt.js';
import type { ObjectMeta } from '../api/meta.js';
import { truncate } from '../api/json.js';
import { MAX_GUEST_TEXT_LENGTH, MAX_REPORTED_ADDRESSES, MAX_VM_NETWORKS } from '../api/limits.js';
import { DEFAULT_ROUTE_ANNOTATION, NETWORK_DATA_ANNOTATION } from '../api/names.js';
import { identityMetadataOf } from '../cluster/transforms.js';

/** Transforms of objects before this process caches them. Fields that are not named here are dropped. */

/** Of an address in any notation. */
const MAX_ADDRESS_LENGTH = 45;
const PRESENT = Object.freeze({});

export function transformGuestVm({ metadata, spec }: VirtualMachine): VirtualMachine {
  const { creationTimestamp } = metadata;
  const small: VirtualMachine = {
    metadata: { ...identityMetadataOf(metadata), ...(creationTimestamp && { creationTimestamp }) },
  };
  const template = spec?.template;
  if (template?.spec === undefined) return small;
  const annotations = guestAnnotations(template.metadata?.annotations);
  const kept = annotations && { metadata: { annotations } };
  return { ...small, spec: { template: { ...kept, spec: transformGuestSpec(template.spec) } } };
}

export function transformGuestVmi({ metadata, spec, status }: VirtualMachineInstance): VirtualMachineInstance {
  const { ownerReferences, creationTimestamp } = metadata;
  const annotations = guestAnnotations(metadata.annotations);
  const interfaces = (status?.interfaces ?? []).slice(0, MAX_VM_NETWORKS).map(transformReported);
  return {
    metadata: {
      ...identityMetadataOf(metadata),
      ...(creationTimestamp && { creationTimestamp }),
      ...(ownerReferences && { ownerReferences }),
      ...(annotations && { annotations }),
    },
    ...(spec && { spec: transformGuestSpec(spec) }),
    status: { ...(status?.phase !== undefined && { phase: status.phase }), interfaces },
  };
}

/** Keeps the whole status, because its conditions are written back as one list. */
export function transformGuestClaim(claim: IPAMClaim): IPAMClaim {
  const { managedFields: _dropped, ...metadata } = claim.metadata as ObjectMeta & { managedFields?: unknown };
  return { ...claim, metadata };
}

function guestAnnotations(all: Record<string, string> = {}): Record<string, string> | undefined {
  const found = [NETWORK_DATA_ANNOTATION, DEFAULT_ROUTE_ANNOTATION].flatMap((key) => {
    const text = all[key];
    return text === undefined ? [] : [[key, truncate(text, MAX_GUEST_TEXT_LENGTH)]];
  });
  return found.length === 0 ? undefined : (Object.fromEntries(found) as Record<string, string>);
}

/** Unlike in other processes, every interface is kept: a guest must know all of them. */
function transformGuestSpec({ networks = [], domain, volumes = [] }: VmiSpec): VmiSpec {
  const interfaces = domain?.devices?.interfaces ?? [];
  const disk = volumes.find(({ cloudInitNoCloud, cloudInitConfigDrive }) => cloudInitNoCloud ?? cloudInitConfigDrive);
  return {
    networks: networks
      .slice(0, MAX_VM_NETWORKS)
      .map(({ name, multus, pod }) => ({
        name,
        ...(multus && {
          multus: { networkName: multus.networkName, ...(multus.default !== undefined && { default: multus.default }) },
        }),
        ...(pod && { pod: PRESENT }),
      })),
    domain: { devices: { interfaces: interfaces.slice(0, MAX_VM_NETWORKS).map(transformInterface) } },
    ...(disk && { volumes: [transformDisk(disk)] }),
  };
}

function transformInterface({ name, state, macAddress, sriov }: VmInterface): VmInterface {
  return {
    name,
    ...(state !== undefined && { state }),
    ...(macAddress !== undefined && { macAddress: truncate(macAddress, MAX_GUEST_TEXT_LENGTH) }),
    ...(sriov && { sriov: PRESENT }),
  };
}

function transformDisk({ cloudInitNoCloud, cloudInitConfigDrive }: VmVolume): VmVolume {
  const { name } = (cloudInitNoCloud ?? cloudInitConfigDrive)?.networkDataSecretRef ?? {};
  const source =
    name === undefined ? PRESENT : { networkDataSecretRef: { name: truncate(name, MAX_GUEST_TEXT_LENGTH) } };
  return cloudInitNoCloud === undefined ? { cloudInitConfigDrive: source } : { cloudInitNoCloud: source };
}

function transformReported({ name, mac, infoSource, ipAddresses = [] }: VmiInterfaceStatus): VmiInterfaceStatus {
  return {
    ...(name !== undefined && { name: truncate(name, MAX_GUEST_TEXT_LENGTH) }),
    ...(mac !== undefined && { mac: truncate(mac, MAX_GUEST_TEXT_LENGTH) }),
    ...(infoSource !== undefined && { infoSource: truncate(infoSource, MAX_GUEST_TEXT_LENGTH) }),
    ipAddresses: ipAddresses.slice(0, MAX_REPORTED_ADDRESSES).map((text) => truncate(text, MAX_ADDRESS_LENGTH)),
  };
}
