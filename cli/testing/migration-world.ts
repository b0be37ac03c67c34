import type { AddressLease } from '../../api/address-lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import { NETWORK_STATUS_ANNOTATION, NETWORKS_ANNOTATION } from '../../api/names.js';
import type { WhereaboutsObject } from '../whereabouts/kinds.js';
import type { MigrateDeps } from '../whereabouts/migrate.js';
import type { ObservedCluster } from '../whereabouts/plan-types.js';
import { readLease, releaseLease } from '../../addressing/lease/lease.js';
import type { ListOptions } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import type { ObjectRef, Resource } from '../../kube/resource.js';
import { ManualClock } from '../../test/manual-clock.js';
import { mergePatch } from '../../test/merge-patch.js';
import { day } from '../../test/pool-objects.js';

/** A cluster whose networks are whereabouts', for tests of moving them over. */

/** A NAD of whereabouts. @param key `namespace/name` */
export function whereaboutsNad(
  key: string,
  ipam: object | string,
  more: { born?: number; [key: string]: unknown } = {},
) {
  const [namespace = '', name = ''] = key.split('/');
  const { born = 1, ...fields } = more;
  const config =
    typeof ipam === 'string'
      ? ipam
      : JSON.stringify({ name, type: 'bridge', ...fields, ipam: { type: 'whereabouts', ...ipam } });
  return {
    metadata: { namespace, name, uid: `${key}-uid`, creationTimestamp: day(born) },
    spec: { config },
  } satisfies NetworkAttachmentDefinition;
}

/** An IPPool as whereabouts keeps it. @param allocations pods by offset, or anything else as it is */
export function ipPool(name: string, range: unknown, allocations: Record<string, unknown> = {}): WhereaboutsObject {
  const entries = Object.entries(allocations).map(([offset, given]): [string, unknown] => [
    offset,
    typeof given === 'string' ? { id: `c-${given.replace('/', '-')}`, podref: given, ifname: 'net1' } : given,
  ]);
  return { metadata: { namespace: 'kube-system', name }, spec: { range, allocations: Object.fromEntries(entries) } };
}

export function reservation(name: string, podref: unknown): WhereaboutsObject {
  return { metadata: { namespace: 'kube-system', name }, spec: { podref } };
}

export interface LivePodOptions {
  /** What network-status says: addresses by NAD; undefined: nothing. */
  readonly has?: Readonly<Record<string, readonly string[]>>;
  /** The NADs that it asks for, `net1` first. Default: those that it has. */
  readonly asks?: readonly string[];
  readonly phase?: string;
  readonly uid?: string;
  /** The VMI that owns it. */
  readonly vmi?: string;
  readonly annotations?: Record<string, string>;
}

/** A pod on node-1. @param key `namespace/name` */
export function livePod(key: string, given: LivePodOptions = {}): Pod {
  const { has, phase = 'Running', uid, vmi, annotations } = given;
  const [namespace = '', name = ''] = key.split('/');
  const statuses = Object.entries(has ?? {}).map(([nad, ips], index) => ({
    name: nad,
    interface: `net${index + 1}`,
    ips,
    mac: `02:00:00:00:00:0${index + 1}`,
  }));
  const status = has === undefined ? {} : { [NETWORK_STATUS_ANNOTATION]: JSON.stringify(statuses) };
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: vmi ?? '', uid: `${vmi}-uid` };
  return {
    metadata: {
      ...{ namespace, name, uid: uid ?? `${key}-uid` },
      annotations: { ...status, ...networksOf(given), ...annotations },
      ...(vmi !== undefined && { ownerReferences: [{ ...owner, controller: true }] }),
    },
    spec: { nodeName: 'node-1' },
    status: { phase },
  };
}

function networksOf({ has = {}, asks = Object.keys(has) }: LivePodOptions): Record<string, string> {
  return asks.length === 0 ? {} : { [NETWORKS_ANNOTATION]: asks.join(',') };
}

export function observedOf(given: Partial<ObservedCluster>): ObservedCluster {
  const none = { nads: [], ipPools: [], reservations: [], slices: [], leases: [], pools: [], claims: [], pods: [] };
  return { ...none, ...given };
}

interface MigrationObjects {
  ippools: WhereaboutsObject;
  overlappingrangeipreservations: WhereaboutsObject;
  nodeslicepools: WhereaboutsObject;
  'network-attachment-definitions': NetworkAttachmentDefinition;
  addresspools: AddressPool;
  addressleases: AddressLease;
  ipamclaims: IPAMClaim;
  pods: Pod;
}

/** The process is gone, wherever it was. */
export class ProcessKilled extends Error {}

/** The API server of such a cluster, as far as the migration uses it. */
export class MigrationCluster {
  readonly clock = new ManualClock(Date.parse('2026-06-01T00:00:00Z'));
  readonly printed: string[] = [];
  readonly logged: string[] = [];
  /** Called before each write; may throw. */
  beforeWrite: (write: { verb: string; plural: string; name: string }) => void = () => undefined;
  /** Called when pods are listed: what happens meanwhile. */
  afterPods: () => void = () => undefined;
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  #version = 0;
  writes = 0;

  constructor(observed: ObservedCluster) {
    const { ipPools, reservations, slices, nads, pools, leases, claims, pods } = observed;
    this.#fill('ippools', ipPools);
    this.#fill('overlappingrangeipreservations', reservations);
    this.#fill('nodeslicepools', slices);
    this.#fill('network-attachment-definitions', nads);
    this.#fill('addresspools', pools);
    this.#fill('addressleases', leases);
    this.#fill('ipamclaims', claims);
    this.#fill('pods', pods);
  }

  all<K extends keyof MigrationObjects>(plural: K): MigrationObjects[K][] {
    return [...this.#of(plural).values()] as MigrationObjects[K][];
  }

  put<K extends keyof MigrationObjects>(plural: K, object: MigrationObjects[K]): void {
    this.#store(plural, structuredClone(object));
  }

  remove(plural: keyof MigrationObjects, key: string): void {
    this.#of(plural).delete(key);
  }

  /** Leases as they are: name, owner and state. */
  held(): string[] {
    return this.all('addressleases')
      .map(({ metadata, spec }) => {
        const owner = spec.owner === undefined ? 'reserved' : `${spec.owner.namespace}/${spec.owner.name}`;
        return `${metadata.name} ${owner}${spec.releasedAt === undefined ? '' : ' released'}`;
      })
      .sort();
  }

  /** As an agent does for a pod that is gone. */
  release(name: string): void {
    const lease = this.all('addressleases').find(({ metadata }) => metadata.name === name);
    if (lease === undefined) throw new TypeError(name);
    const write = releaseLease(readLease(lease), this.clock.wall());
    if (write.verb === 'patch') mergePatch(lease, write.body);
  }

  client(): MigrateDeps['client'] {
    return {
      list: (resource: Resource, { namespace }: ListOptions = {}) => {
        const { items, resourceVersion } = this.#list(resource);
        const isListed = ({ metadata }: KubeObject) => namespace === undefined || metadata.namespace === namespace;
        return Promise.resolve({ items: items.filter(isListed), resourceVersion });
      },
      listAs: (resource: Resource, project: (object: KubeObject) => unknown) => {
        const { items, resourceVersion } = this.#list(resource);
        const listed = items.map(project);
        if (resource.plural === 'pods') this.afterPods();
        return Promise.resolve({ items: listed, resourceVersion });
      },
      get: (resource: Resource, ref: ObjectRef) =>
        Promise.resolve().then(() => structuredClone(this.#find(resource, ref))),
      create: (resource: Resource, object: KubeObject) =>
        this.#write('create', resource, object.metadata, () => this.#create(resource, object)),
      patch: (resource: Resource, ref: ObjectRef, patch: { body: KubeObject }) =>
        this.#write('patch', resource, ref, () => this.#patch(resource, ref, patch.body)),
      delete: (resource: Resource, ref: ObjectRef, options: Partial<ObjectMeta>) =>
        this.#write('delete', resource, ref, () => {
          this.#check(this.#find(resource, ref), options);
          this.#of(resource.plural).delete(ref.name);
        }),
    } as unknown as MigrateDeps['client'];
  }

  deps(): MigrateDeps {
    return {
      client: this.client(),
      clock: this.clock,
      concurrency: 4,
      print: (line) => this.printed.push(line),
      printStatus: (line) => this.logged.push(line),
    };
  }

  async #write<T>(verb: string, { plural }: Resource, { name }: ObjectRef, act: () => T): Promise<T> {
    await Promise.resolve();
    this.beforeWrite({ verb, plural, name });
    const result = act();
    this.writes += 1;
    return result;
  }

  #list({ plural }: Resource) {
    return { items: structuredClone([...this.#of(plural).values()]), resourceVersion: String(this.#version) };
  }

  #create({ plural }: Resource, object: KubeObject): KubeObject {
    if (this.#of(plural).has(object.metadata.name)) throw statusError(409, 'AlreadyExists', object.metadata.name);
    return structuredClone(this.#store(plural, structuredClone(object)));
  }

  #patch(resource: Resource, ref: ObjectRef, body: KubeObject): KubeObject {
    const found = this.#find(resource, ref);
    this.#check(found, body.metadata);
    mergePatch(found, { ...body, metadata: { labels: body.metadata.labels ?? {} } });
    return structuredClone(this.#store(resource.plural, found));
  }

  #check({ metadata }: KubeObject, { uid, resourceVersion }: Partial<ObjectMeta>): void {
    if (
      (uid ?? metadata.uid) !== metadata.uid ||
      (resourceVersion ?? metadata.resourceVersion) !== metadata.resourceVersion
    )
      throw statusError(409, 'Conflict', metadata.name);
  }

  #find({ plural }: Resource, { namespace, name }: ObjectRef): KubeObject {
    const found = this.#of(plural).get(namespace === undefined ? name : `${namespace}/${name}`);
    if (found === undefined) throw statusError(404, 'NotFound', name);
    return found;
  }

  #fill(plural: keyof MigrationObjects, objects: readonly KubeObject[]): void {
    for (const object of objects) this.#store(plural, structuredClone(object));
  }

  #store(plural: string, object: KubeObject): KubeObject {
    this.#version += 1;
    object.metadata.uid ??= `uid-${this.#version}`;
    object.metadata.resourceVersion = String(this.#version);
    const { namespace, name } = object.metadata;
    this.#of(plural).set(namespace === undefined ? name : `${namespace}/${name}`, object);
    return object;
  }

  #of(plural: string): Map<string, KubeObject> {
    const known = this.#objects.get(plural);
    if (known !== undefined) return known;
    const made = new Map<string, KubeObject>();
    this.#objects.set(plural, made);
    return made;
  }
}

function statusError(status: number, reason: string, name: string): StatusError {
  return new StatusError({ request: 'a request', status, reason, message: name, details: { name } });
}
