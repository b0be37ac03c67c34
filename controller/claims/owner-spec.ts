import type { ClaimOwner } from '../../api/ipam-claim.js';
import {
  type SecondaryNetwork,
  type VirtualMachine,
  type VirtualMachineInstance,
  type VmInterface,
  type VmiInterfaceStatus,
  type VmiSpec,
  secondaryNetworks,
} from '../../api/kubevirt.js';
import { type KubeObject, type ObjectMeta, joinKey } from '../../api/meta.js';
import { ownerOfVmi } from '../../api/vm-claims.js';

/** A secondary network with the key, `namespace/name`, of its NAD. */
export interface OwnerNetwork extends SecondaryNetwork {
  readonly nadKey: string;
}

/** What the template of a VM, or a VMI, says about networks. It is derived once for each observation. */
export interface OwnerSpec {
  /** KubeVirt copies the annotations of a template to the VMI. */
  readonly annotations: Record<string, string> | undefined;
  /** The names of all networks, the primary one included. */
  readonly networkNames: ReadonlySet<string>;
  /** By name, in the order of the spec. */
  readonly secondaryNetworks: ReadonlyMap<string, OwnerNetwork>;
  /** By name. */
  readonly interfaces: ReadonlyMap<string, VmInterface>;
}

/** A VM as a plan sees it: without the raw spec, so that nothing can derive its networks again. */
export interface ObservedVm extends KubeObject {
  readonly spec: OwnerSpec;
}

/** A VMI as a plan sees it: without the raw spec. */
export interface ObservedVmi extends KubeObject {
  /** Its VM, or the VMI itself. */
  readonly owner: ClaimOwner;
  readonly spec: OwnerSpec;
  /** The interfaces that the status reports. */
  readonly reported: readonly VmiInterfaceStatus[];
}

export function observeVm({ metadata, spec }: VirtualMachine): ObservedVm {
  const template = spec?.template;
  return { metadata, spec: deriveSpec(template?.metadata?.annotations, template?.spec, metadata) };
}

export function observeVmi(vmi: VirtualMachineInstance): ObservedVmi {
  const { metadata, spec, status } = vmi;
  const derived = deriveSpec(metadata.annotations, spec, metadata);
  return { metadata, owner: ownerOfVmi(vmi), spec: derived, reported: status?.interfaces ?? [] };
}

function deriveSpec(
  annotations: Record<string, string> | undefined,
  spec: VmiSpec | undefined,
  { namespace = '' }: ObjectMeta,
): OwnerSpec {
  const networks = secondaryNetworks(spec, namespace).map((network) => ({
    ...network,
    nadKey: joinKey(network.nad.namespace, network.nad.name),
  }));
  return {
    annotations,
    networkNames: new Set(spec?.networks?.map(({ name }) => name)),
    secondaryNetworks: byName(networks),
    interfaces: byName(spec?.domain?.devices?.interfaces ?? []),
  };
}

/** The first of a name counts. KubeVirt rejects a name that is given twice. */
function byName<T extends { name: string }>(items: readonly T[]): Map<string, T> {
  const found = new Map<string, T>();
  for (const item of items) if (!found.has(item.name)) found.set(item.name, item);
  return found;
}
