import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../../api/kubevirt.js';
import type { KubeObject } from '../../../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../../../api/network-attachment.js';
import type { Pod } from '../../../../api/pod.js';
import { ObjectWorld } from '../../../../test/object-world.js';

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

export type Propagation = 'Background' | 'Foreground' | 'Orphan';
const PROPAGATION_FINALIZERS: Record<Propagation, string[]> = {
  Background: [],
  Foreground: ['foregroundDeletion'],
  Orphan: ['orphan'],
};

/** The objects of a cluster with KubeVirt, and their finalizers. */
export class ClaimsWorld extends ObjectWorld<Objects> {
  /** Called before a claim is removed. */
  onClaimRemoved: (claim: IPAMClaim) => void = () => undefined;
  /** Called after a claim has changed. */
  onClaimChanged: (before: IPAMClaim, after: IPAMClaim) => void = () => undefined;

  protected override readonly isRemoved = ({ metadata: { deletionTimestamp, finalizers = [] } }: KubeObject): boolean =>
    deletionTimestamp !== undefined && finalizers.length === 0;

  constructor() {
    super(KINDS, 0);
  }

  hasUid(uid: string): boolean {
    return KINDS.some((kind) => this.list(kind).some(({ metadata }) => metadata.uid === uid));
  }

  delete(kind: Kind, key: string, propagation: Propagation = 'Background'): void {
    const object = this.find(kind, key);
    const finalizers = [...new Set([...(object.metadata.finalizers ?? []), ...PROPAGATION_FINALIZERS[propagation]])];
    if (finalizers.length === 0) {
      this.removeObject(kind, object);
      return;
    }
    this.update(kind, key, ({ metadata }) => {
      metadata.finalizers = finalizers;
      metadata.deletionTimestamp ??= timeOf(this.version);
    });
  }

  override update<K extends Kind>(kind: K, key: string, change: (copy: Objects[K]) => void): Objects[K] {
    const before = this.get(kind, key);
    const after = super.update(kind, key, change);
    if (kind === 'claims') this.onClaimChanged(before as IPAMClaim, after as IPAMClaim);
    return after;
  }

  dropFinalizers(kind: Kind, key: string, ...names: string[]): void {
    this.update(kind, key, ({ metadata }) => {
      metadata.finalizers = (metadata.finalizers ?? []).filter((name) => !names.includes(name));
    });
  }

  protected override removeObject<K extends Kind>(kind: K, object: Objects[K]): Objects[K] {
    if (kind === 'claims') this.onClaimRemoved(object as IPAMClaim);
    return super.removeObject(kind, object);
  }

  protected override identityOf(kind: Kind, { metadata }: KubeObject, version: number) {
    return { uid: metadata.uid ?? `${kind}-${version}`, creationTimestamp: timeOf(version) };
  }
}

/** The time of day at which the world has a version. */
export function timeOf(version: number): string {
  return new Date(Date.UTC(2026, 0, 1) + version * 1000).toISOString();
}
