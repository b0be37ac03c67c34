import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../../api/kubevirt.js';
import { type KubeObject, objectKey } from '../../../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../../../api/network-attachment.js';
import type { Pod } from '../../../../api/pod.js';
import { StatusError } from '../../../../kube/errors.js';

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

export type WatchEvent = { type: 'set'; object: KubeObject } | { type: 'removed'; object: KubeObject };

export type Propagation = 'Background' | 'Foreground' | 'Orphan';
const PROPAGATION_FINALIZERS: Record<Propagation, string[]> = {
  Background: [],
  Foreground: ['foregroundDeletion'],
  Orphan: ['orphan'],
};

/** The objects of a cluster as its API server stores them: versions, finalizers, and a log that watches follow. */
export class ClaimsWorld {
  readonly log: Record<Kind, WatchEvent[]> = {
    vms: [],
    vmis: [],
    launchers: [],
    claims: [],
    networks: [],
    namespaces: [],
  };
  /** Called before a claim is removed. */
  onClaimRemoved: (claim: IPAMClaim) => void = () => undefined;
  readonly #objects: Record<Kind, Map<string, KubeObject>> = {
    vms: new Map(),
    vmis: new Map(),
    launchers: new Map(),
    claims: new Map(),
    networks: new Map(),
    namespaces: new Map(),
  };
  #serial = 0;

  /** Grows with every write. */
  get version(): number {
    return this.#serial;
  }

  get<K extends Kind>(kind: K, key: string): Objects[K] | undefined {
    return this.#objects[kind].get(key) as Objects[K] | undefined;
  }

  list<K extends Kind>(kind: K): Objects[K][] {
    return [...this.#objects[kind].values()] as Objects[K][];
  }

  hasUid(uid: string): boolean {
    return KINDS.some((kind) => this.list(kind).some(({ metadata }) => metadata.uid === uid));
  }

  create<K extends Kind>(kind: K, object: Objects[K]): Objects[K] {
    const key = objectKey(object);
    if (this.#objects[kind].has(key))
      throw apiError(409, 'AlreadyExists', `${kind} ${key} exists`, object.metadata.name);
    const version = this.#tick();
    const stored = structuredClone(object);
    stored.metadata = {
      ...stored.metadata,
      uid: stored.metadata.uid ?? `${kind}-${version}`,
      resourceVersion: String(version),
      creationTimestamp: time(version),
    };
    this.#set(kind, stored);
    return stored;
  }

  /** Changes a copy. An object that is being deleted and has no finalizers left is removed. */
  update<K extends Kind>(kind: K, key: string, change: (copy: Objects[K]) => void): Objects[K] {
    const copy = structuredClone(this.#need(kind, key));
    const before = JSON.stringify(copy);
    change(copy);
    if (JSON.stringify(copy) === before) return copy;
    const { deletionTimestamp, finalizers = [] } = copy.metadata;
    if (deletionTimestamp !== undefined && finalizers.length === 0) {
      this.#remove(kind, copy);
      return copy;
    }
    copy.metadata.resourceVersion = String(this.#tick());
    this.#set(kind, copy);
    return copy;
  }

  delete(kind: Kind, key: string, propagation: Propagation = 'Background'): void {
    const object = this.#need(kind, key);
    const finalizers = [...new Set([...(object.metadata.finalizers ?? []), ...PROPAGATION_FINALIZERS[propagation]])];
    if (finalizers.length === 0) {
      this.#remove(kind, object);
      return;
    }
    this.update(kind, key, ({ metadata }) => {
      metadata.finalizers = finalizers;
      metadata.deletionTimestamp ??= time(this.#serial);
    });
  }

  dropFinalizers(kind: Kind, key: string, ...names: string[]): void {
    this.update(kind, key, ({ metadata }) => {
      metadata.finalizers = (metadata.finalizers ?? []).filter((name) => !names.includes(name));
    });
  }

  #need<K extends Kind>(kind: K, key: string): Objects[K] {
    const object = this.get(kind, key);
    if (object === undefined)
      throw apiError(404, 'NotFound', `${kind} ${key} is not found`, key.split('/').pop() ?? '');
    return object;
  }

  #set(kind: Kind, object: KubeObject): void {
    this.#objects[kind].set(objectKey(object), object);
    this.log[kind].push({ type: 'set', object });
  }

  #remove(kind: Kind, object: KubeObject): void {
    if (kind === 'claims') this.onClaimRemoved(object as IPAMClaim);
    this.#tick();
    this.#objects[kind].delete(objectKey(object));
    this.log[kind].push({ type: 'removed', object });
  }

  #tick(): number {
    return ++this.#serial;
  }
}

export function apiError(status: number, reason: string, message: string, name: string): StatusError {
  return new StatusError({ request: 'simulated', status, reason, message, details: { name } });
}

function time(version: number): string {
  return new Date(Date.UTC(2026, 0, 1) + version * 1000).toISOString();
}
