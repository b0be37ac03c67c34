import type { AddressLease, LeaseWrite } from '../api/address-lease.js';
import { mergePatch } from './merge-patch.js';

export interface LeaseEvent {
  readonly isRemoval: boolean;
  readonly lease: AddressLease;
}

/** The leases of an API server that answers at once: names are unique, versions grow, writes have preconditions. */
export class LeaseStore {
  readonly leases = new Map<string, AddressLease>();
  /** All events of a watch, in order. */
  readonly log: LeaseEvent[] = [];
  /** Milliseconds since the epoch. */
  now = Date.UTC(2026, 0, 1);
  /** One digit before the next: versions are no text. */
  #version = 95;

  /** @returns the answer of the API server; undefined if it rejects the write, and after a delete */
  write(write: LeaseWrite): AddressLease | undefined {
    switch (write.verb) {
      case 'create':
        return this.#create(write.lease);
      case 'patch':
        return this.#patch(write.name, write.body as Patch);
      case 'delete':
        if (this.leases.get(write.name)?.metadata.uid === write.uid) this.remove(write.name);
        return undefined;
    }
  }

  remove(name: string): void {
    const lease = this.leases.get(name);
    if (lease === undefined) return;
    this.#version++;
    this.leases.delete(name);
    this.log.push({ isRemoval: true, lease });
  }

  #create(lease: AddressLease): AddressLease | undefined {
    const { name } = lease.metadata;
    if (this.leases.has(name)) return undefined;
    const creationTimestamp = new Date(this.now).toISOString();
    return this.#store({ ...lease, metadata: { ...lease.metadata, uid: `u${this.#version}`, creationTimestamp } });
  }

  #patch(name: string, { metadata, spec }: Patch): AddressLease | undefined {
    const lease = this.leases.get(name);
    if (lease?.metadata.uid !== metadata.uid) return undefined;
    if (lease.metadata.resourceVersion !== metadata.resourceVersion) return undefined;
    const changed = structuredClone(lease);
    mergePatch(changed, { spec });
    return this.#store(changed);
  }

  #store(lease: AddressLease): AddressLease {
    const stored = { ...lease, metadata: { ...lease.metadata, resourceVersion: String(++this.#version) } };
    this.leases.set(lease.metadata.name, stored);
    this.log.push({ isRemoval: false, lease: stored });
    return stored;
  }
}

interface Patch {
  metadata: { uid: string; resourceVersion: string };
  spec: object;
}
