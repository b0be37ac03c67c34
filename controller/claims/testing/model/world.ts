import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../../api/kubevirt.js';
import type { KubeObject } from '../../../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../../../api/networks/network-attachment.js';
import type { Pod } from '../../../../api/pod.js';
import type { Resource } from '../../../../kube/resource.js';
import {
  IPAM_CLAIMS,
  NAMESPACES,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../../../kube/resources.js';
import type { DeleteRequest } from '../../../../kube/testing/object-tracker.js';
import { ObjectWorld, refOf } from '../../../../test/object-tracker/object-world.js';

export type SimulatedVm = VirtualMachine & { running: boolean };

export interface Objects {
  vms: SimulatedVm;
  vmis: VirtualMachineInstance;
  launchers: Pod;
  claims: IPAMClaim;
  networks: NetworkAttachmentDefinition;
  namespaces: KubeObject;
}
export type Kind = keyof Objects;
export const KINDS: readonly Kind[] = ['vms', 'vmis', 'launchers', 'claims', 'networks', 'namespaces'];
export const RESOURCES = {
  vms: VIRTUAL_MACHINES as Resource<SimulatedVm>,
  vmis: VIRTUAL_MACHINE_INSTANCES,
  launchers: PODS,
  claims: IPAM_CLAIMS,
  networks: NETWORK_ATTACHMENT_DEFINITIONS,
  namespaces: NAMESPACES,
};

/** The objects of a cluster with KubeVirt, and their finalizers. */
export class ClaimsWorld extends ObjectWorld<Objects> {
  /** Called after a claim was removed. */
  onClaimRemoved: (claim: IPAMClaim) => void = () => undefined;
  /** Called after a claim has changed. */
  onClaimChanged: (before: IPAMClaim, after: IPAMClaim) => void = () => undefined;

  constructor() {
    super(RESOURCES, {
      now: () => Date.parse(this.timeOfNext()),
      uidOf: ({ plural }, { metadata }, version) => metadata.uid ?? `${plural}-${version}`,
    });
    this.tracker.observe(IPAM_CLAIMS, ({ type, before, object }) => {
      if (before !== undefined) this.onClaimChanged(before, object);
      if (type === 'DELETED') this.onClaimRemoved(object);
    });
  }

  hasUid(uid: string): boolean {
    return KINDS.some((kind) => this.list(kind).some(({ metadata }) => metadata.uid === uid));
  }

  delete(kind: Kind, key: string, propagationPolicy: DeleteRequest['propagationPolicy'] = 'Background'): void {
    this.tracker.delete<KubeObject>(RESOURCES[kind], refOf(key), { propagationPolicy });
  }

  dropFinalizers(kind: Kind, key: string, ...names: string[]): void {
    this.update(kind, key, ({ metadata }) => {
      metadata.finalizers = (metadata.finalizers ?? []).filter((name) => !names.includes(name));
    });
  }

  protected override timeOfNext(): string {
    return timeOf(this.version + 1);
  }
}

/** The time of day at which the world has a version. */
export function timeOf(version: number): string {
  return new Date(Date.UTC(2026, 0, 1) + version * 1000).toISOString();
}
