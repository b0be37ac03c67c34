import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import { NETWORKS_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { readLease, releaseLease } from '../../addressing/lease/lease.js';
import {
  ADDRESS_LEASES,
  ADDRESS_POOLS,
  IPAM_CLAIMS,
  NETWORK_ATTACHMENT_DEFINITIONS,
  PODS,
} from '../../kube/resources.js';
import { ManualClock } from '../../test/manual-clock.js';
import { mergePatch } from '../../test/merge-patch.js';
import { day } from '../../test/objects/pool-objects.js';
import {
  IP_POOLS,
  IP_RESERVATIONS,
  type MigrationObservation,
  NODE_SLICE_POOLS,
  type WhereaboutsObject,
} from '../whereabouts/plan-types.js';
import type { MigrateDeps } from '../whereabouts/migrate.js';
import { MemoryCluster } from './memory-cluster.js';

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

export function observedOf(given: Partial<MigrationObservation>): MigrationObservation {
  const none = { nads: [], ipPools: [], reservations: [], slices: [], leases: [], pools: [], claims: [], pods: [] };
  return { ...none, ...given };
}

/** The API server of such a cluster, as far as the migration uses it. */
export class MigrationCluster extends MemoryCluster {
  readonly clock = new ManualClock(Date.parse('2026-06-01T00:00:00Z'));
  clusterFlags = '';

  constructor(observed: MigrationObservation) {
    super();
    this.put(IP_POOLS, ...observed.ipPools)
      .put(IP_RESERVATIONS, ...observed.reservations)
      .put(NODE_SLICE_POOLS, ...observed.slices)
      .put(NETWORK_ATTACHMENT_DEFINITIONS, ...observed.nads)
      .put(ADDRESS_POOLS, ...observed.pools)
      .put(ADDRESS_LEASES, ...observed.leases)
      .put(IPAM_CLAIMS, ...observed.claims)
      .put(PODS, ...observed.pods);
  }

  /** Leases as they are: name, owner and state. */
  held(): string[] {
    return this.all(ADDRESS_LEASES)
      .map(({ metadata, spec }) => {
        const owner = spec.owner === undefined ? 'reserved' : `${spec.owner.namespace}/${spec.owner.name}`;
        return `${metadata.name} ${owner}${spec.releasedAt === undefined ? '' : ' released'}`;
      })
      .sort();
  }

  /** As an agent does for a pod that is gone. */
  release(name: string): void {
    this.change(ADDRESS_LEASES, name, (lease) => {
      mergePatch(lease, releaseLease(readLease(lease), this.clock.wall()).body);
      return lease;
    });
  }

  deps(): MigrateDeps {
    return { ...this.output, client: this.client, clock: this.clock, concurrency: 4, clusterFlags: this.clusterFlags };
  }
}

/** What is broken in a generated IPPool, in turn. */
const BROKEN_ALLOCATIONS: readonly ((offset: number) => [string, unknown])[] = [
  (offset) => [`x${offset}`, { id: 'c', podref: 'a/p' }],
  (offset) => [`${offset + 0x20000}`, { id: 'c', podref: 'a/p' }],
  (offset) => [`${offset}`, null],
  (offset) => [`${offset}`, { id: 7, podref: ['a/p'] }],
  (offset) => [`${offset}`, { id: '', podref: 'no such form' }],
];

/**
 * A /16 of whereabouts with many allocations: of pods that live, of some that are gone, and of some that nobody can read.
 * @param everyGone each n-th is of a pod that is gone
 * @param everyBroken each n-th is broken
 */
export function makeLargeCluster(
  allocations: number,
  { everyGone = 10, everyBroken = 25, namespace = 'a' } = {},
): MigrationObservation & { live: number; gone: number; broken: number } {
  const entries: [string, unknown][] = [];
  const pods: Pod[] = [];
  const counts = { live: 0, gone: 0, broken: 0 };
  for (let offset = 1; offset <= allocations; offset++) {
    const name = `p-${offset}`;
    if (offset % everyBroken === 0) {
      entries.push(BROKEN_ALLOCATIONS[counts.broken++ % BROKEN_ALLOCATIONS.length]!(offset));
      continue;
    }
    const podref = `${namespace}/${name}`;
    entries.push([`${offset}`, { id: `container-${offset}`, podref, ifname: 'net1' }]);
    if (offset % everyGone === 0) counts.gone += 1;
    else {
      counts.live += 1;
      const address = `10.74.${offset >> 8}.${offset & 255}`;
      pods.push(livePod(podref, { has: { [`${namespace}/blue`]: [address] } }));
    }
  }
  const pool = {
    metadata: { namespace: 'kube-system', name: '10.74.0.0-16' },
    spec: { range: '10.74.0.0/16', allocations: Object.fromEntries(entries) },
  };
  const nads = [whereaboutsNad(`${namespace}/blue`, { range: '10.74.0.0/16' })];
  return { ...observedOf({ nads, ipPools: [pool], pods }), ...counts };
}
