import type { AddressLease } from '../../api/address-lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import { type KubeObject, joinKey } from '../../api/meta.js';
import { POOL_NAD_NAMESPACE } from '../../api/names.js';
import { pickKeys } from '../../cluster/metadata.js';
import type { KeyParts } from '../../kube/informers/namespaced-map.js';
import { type Event, EVENTS } from '../../kube/events.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  VIRTUAL_MACHINES,
  VIRTUAL_MACHINE_INSTANCES,
} from '../../kube/resources.js';
import { type LeaseRecord, readLease } from '../../addressing/lease/lease.js';
import { identityOf, slimClaim, readEvent } from '../reader.js';
import { vmNameOf } from './bounds.js';
import { compareText } from './sort-rows.js';
import { type VmRecord, VmTable, type VmiRecord } from './vm-table.js';
import { type WatchDeps, WatchedKind } from './watched-kind.js';
import type { EventRow, PartStatus } from './protocol.js';

/** Only what the page shows is kept: no environment, no volumes, no other annotations. */

export interface EventRecord extends KubeObject {
  readonly row: EventRow;
  readonly object: { readonly kind: string; readonly name: string };
}

const BY_SPACE = 'addressSpace';
const BY_OWNER = 'owner';
const BY_VM = 'vm';
/** A VMI has few; its status is written by the node. */
const MAX_INTERFACES = 64;

/** The objects that the page shows, as far as the user may read them. */
export class ClusterWatch {
  readonly pools: WatchedKind<AddressPool, AddressPool>;
  readonly leases: WatchedKind<AddressLease, LeaseRecord>;
  readonly claims: WatchedKind<IPAMClaim, IPAMClaim>;
  readonly vms: WatchedKind<VirtualMachine, VmRecord>;
  readonly vmis: WatchedKind<VirtualMachineInstance, VmiRecord>;
  readonly vmTable = new VmTable(this);
  readonly #deps: WatchDeps;
  /** Events of namespaces whose VMs somebody looks at, with the number of readers. */
  readonly #events = new Map<string, { kind: WatchedKind<Event, EventRecord>; readers: number }>();

  /** @param namespace where to look for objects of which the user may not list all */
  constructor(deps: WatchDeps, namespace: string) {
    this.#deps = deps;
    this.pools = new WatchedKind({ resource: ADDRESS_POOLS, transform: transformPool, namespace }, deps);
    const leaseIndexes = {
      [BY_SPACE]: ({ addressSpace }: LeaseRecord) => [addressSpace],
      [BY_OWNER]: ({ owner }: LeaseRecord) => (owner === undefined ? [] : [joinKey(owner.namespace, owner.name)]),
    };
    this.leases = new WatchedKind(
      { resource: ADDRESS_LEASES, transform: readLease, indexes: leaseIndexes, namespace },
      deps,
    );
    const claimIndexes = { [BY_VM]: (claim: IPAMClaim) => [vmOf(claim)] };
    this.claims = new WatchedKind(
      {
        ...{ resource: IPAM_CLAIMS, transform: slimClaim, indexes: claimIndexes, namespace },
        onObject: (claim) => vmNameOf(claim) !== '' && this.vmTable.changed(vmOf(claim)),
      },
      deps,
    );
    const onObject = ({ metadata: { namespace = '', name } }: KubeObject) => this.vmTable.changed({ namespace, name });
    this.vms = new WatchedKind({ resource: VIRTUAL_MACHINES, transform: transformVm, namespace, onObject }, deps);
    this.vmis = new WatchedKind(
      { resource: VIRTUAL_MACHINE_INSTANCES, transform: transformVmi, namespace, onObject },
      deps,
    );
  }

  get #kinds() {
    return [this.pools, this.leases, this.claims, this.vms, this.vmis];
  }

  parts(namespace?: string): PartStatus[] {
    const events = namespace === undefined ? undefined : this.#events.get(namespace);
    return [...this.#kinds, ...(events === undefined ? [] : [events.kind])].map(({ status }) => status);
  }

  leasesOfSpace(addressSpace: string): readonly LeaseRecord[] {
    return this.leases.cache.byIndex(BY_SPACE, addressSpace);
  }

  /** @param owner `namespace/name` of a claim or pod */
  leasesOfOwner(owner: string): readonly LeaseRecord[] {
    return this.leases.cache.byIndex(BY_OWNER, owner);
  }

  /** Returns the claims of a VM by name. @param vm `namespace/name` */
  claimsOfVm(vm: string): readonly IPAMClaim[] {
    // the index puts a claim that has changed at its end
    return this.claims.cache.byIndex(BY_VM, vm).toSorted((a, b) => compareText(a.metadata.name, b.metadata.name));
  }

  start(): void {
    for (const kind of this.#kinds) kind.start();
  }

  async stop(): Promise<void> {
    const events = [...this.#events.values()].map(({ kind }) => kind);
    await Promise.all([...this.#kinds, ...events].map((kind) => kind.stop()));
  }

  eventsOf(namespace: string): readonly EventRecord[] {
    return this.#events.get(namespace)?.kind.cache.list() ?? [];
  }

  /** Watches the events of a namespace while somebody reads them. @returns a function that ends that */
  watchEvents(namespace: string): () => void {
    const options = { resource: EVENTS, transform: transformEvent, namespace, isNamespaceOnly: true };
    const entry = this.#events.get(namespace) ?? { kind: new WatchedKind(options, this.#deps), readers: 0 };
    this.#events.set(namespace, entry);
    entry.readers += 1;
    entry.kind.start();
    return () => {
      entry.readers -= 1;
      if (entry.readers > 0) return;
      this.#events.delete(namespace);
      void entry.kind.stop();
    };
  }
}

function vmOf(claim: IPAMClaim): KeyParts {
  return { namespace: claim.metadata.namespace ?? '', name: vmNameOf(claim) };
}

function transformPool({ metadata, spec, status }: AddressPool): AddressPool {
  const annotations = pickKeys(metadata.annotations, [POOL_NAD_NAMESPACE]);
  const kept = { ...identityOf(metadata), ...(annotations && { annotations }) };
  return { metadata: kept, spec, ...(status && { status }) };
}

function transformVm(vm: VirtualMachine): VmRecord {
  return { metadata: identityOf(vm.metadata), status: vm.status?.printableStatus ?? '' };
}

function transformVmi(vmi: VirtualMachineInstance): VmiRecord {
  const { phase = '', nodeName = '', interfaces = [] } = vmi.status ?? {};
  const macs = interfaces.slice(0, MAX_INTERFACES).flatMap(({ mac }) => mac ?? []);
  return { metadata: identityOf(vmi.metadata), phase, node: nodeName, macs };
}

function transformEvent(
  event: Event & { series?: { count?: number; lastObservedTime?: string }; eventTime?: string },
): EventRecord {
  const { metadata, involvedObject, type, reason, message, count, lastTimestamp } = readEvent(event);
  const { series, eventTime } = event;
  const { kind, name } = involvedObject;
  const last = series?.lastObservedTime ?? (lastTimestamp || eventTime || metadata.creationTimestamp || '');
  const row = { type, reason, message, object: `${kind} ${name}`, count: series?.count ?? (count || 1), last };
  return { metadata: identityOf(metadata), object: { kind, name }, row };
}
