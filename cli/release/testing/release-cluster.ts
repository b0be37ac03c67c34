import { expect } from 'chai';
import type { AddressLease, LeaseOwner } from '../../../api/address-lease.js';
import type { VirtualMachineInstance, VmiInterfaceStatus } from '../../../api/kubevirt.js';
import type { Pod } from '../../../api/pod.js';
import { leaseLabels } from '../../../addressing/lease/lease-record.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../../../kube/resources.js';
import { leaseOf, type LeaseOptions } from '../../../test/objects/lease-objects.js';
import { adminPool, holdfastConfig, nadDefinition } from '../../../test/objects/pool-objects.js';
import { vmi } from '../../../test/objects/workload-objects.js';
import { CommandError } from '../../exit-code.js';
import { MemoryCluster } from '../../testing/memory-cluster.js';
import { type ReleaseOptions, releaseByHand } from '../release.js';

/** Of the API server. */
export const NOW = Date.parse('2026-01-02T00:00:00Z');
export const NAME = 'blue.10-0-0-5';

/** The lease of claim `a/c1` that is gone. */
export function lease(address = '10.0.0.5', options: LeaseOptions = {}): AddressLease {
  const made = leaseOf(address, 7, { mac: MAC, ...options });
  return { ...made, metadata: { ...made.metadata, labels: leaseLabels(made.spec) } };
}

/** The lease of pod `a/p1` on node `n1`. The pod is gone. */
export function leaseOfPod(): AddressLease {
  const made = lease();
  const owner: LeaseOwner = { kind: 'Pod', namespace: 'a', name: 'p1', uid: 'p1-uid' };
  return { ...made, spec: { ...made.spec, owner, node: 'n1', containerID: 'c1', interface: 'net1' } };
}

export function podWith(ips: string[], nad = 'a/blue', phase = 'Running'): Pod {
  const annotations = { 'k8s.v1.cni.cncf.io/network-status': JSON.stringify([{ name: nad, interface: 'net1', ips }]) };
  return { metadata: { namespace: 'a', name: 'user', uid: 'user-uid', annotations }, status: { phase } };
}

export const BLUE_REQUESTED = { 'k8s.v1.cni.cncf.io/networks': 'blue' };

/** A running pod that requests the network, with a report that nobody can read, or without one. */
export function silentPod(annotations: Record<string, string> = BLUE_REQUESTED, namespace = 'a'): Pod {
  return { metadata: { namespace, name: 'user', uid: 'user-uid', annotations }, status: { phase: 'Running' } };
}

export function vmiWith(status: VmiInterfaceStatus, namespace = 'a'): VirtualMachineInstance {
  const made = vmi({ data: 'a/blue' }, { name: 'vm1', interfaces: [{ name: 'data', ...status }] });
  return { ...made, metadata: { ...made.metadata, namespace } };
}

export const MAC = '02:00:00:00:00:05';

export function clusterWith(...leases: AddressLease[]): MemoryCluster {
  const cluster = new MemoryCluster();
  cluster.time = new Date(NOW).toISOString();
  return cluster
    .put(ADDRESS_POOLS, adminPool('blue'), adminPool('red', { network: 'red' }))
    .put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition('a/blue', holdfastConfig()))
    .put(NETWORK_ATTACHMENT_DEFINITIONS, nadDefinition('a/red', holdfastConfig({}, 'red')))
    .put(ADDRESS_LEASES, ...(leases.length === 0 ? [lease()] : leases));
}

/** @returns what was printed meanwhile */
export async function run(cluster: MemoryCluster, options: Partial<ReleaseOptions> = {}): Promise<string[]> {
  cluster.printed.length = 0;
  const all = { subject: '10.0.0.5', namespace: 'a', dryRun: false, ignored: new Set<string>(), ...options };
  const print = (line: string) => void cluster.printed.push(line);
  await releaseByHand(all, { client: cluster.client, print });
  return [...cluster.printed];
}

/** Pools serve namespace `other` only. */
export function restricted(cluster: MemoryCluster): MemoryCluster {
  cluster.change(ADDRESS_POOLS, 'blue', (pool) => ({ ...pool, spec: { ...pool.spec, namespaces: ['other'] } }));
  return cluster;
}

export async function refusal(cluster: MemoryCluster, options: Partial<ReleaseOptions> = {}): Promise<string> {
  const error: unknown = await run(cluster, options).catch((thrown: unknown) => thrown);
  expect(error).to.be.instanceOf(CommandError);
  expect(cluster.find(ADDRESS_LEASES, NAME)?.spec.releasedAt).to.equal(undefined);
  return (error as CommandError).message;
}

export const releasedAt = (cluster: MemoryCluster, name = NAME) => cluster.find(ADDRESS_LEASES, name)?.spec.releasedAt;
