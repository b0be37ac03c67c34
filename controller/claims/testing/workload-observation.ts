import type { IPAMClaim } from '../../../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { KubeObject } from '../../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../../api/networks/network-attachment.js';
import type { Pod } from '../../../api/pod.js';
import { observeWorkload, readWorkload } from '../observe.js';
import { type ObservedWorkload } from '../plan/observed-workload.js';
import { LAUNCHER_INDEXES, transformLauncher } from '../../caches.js';
import { CLAIM_INDEXES, NAD_INDEXES, VMI_INDEXES, VM_INDEXES } from '../../../cluster/watch-specs.js';
import {
  transformClaim,
  transformNad,
  transformNamespace,
  transformVm,
  transformVmi,
} from '../../../cluster/transforms.js';
import { Cache, type Indexes } from '../../../kube/informers/cache.js';
import { NAMESPACE, nad } from '../../../test/objects/workload-objects.js';

/** What is in the cluster, as far as one workload goes. */
export interface WorkloadScenario {
  vm?: VirtualMachine;
  /** VMs of other names. */
  otherVms?: VirtualMachine[];
  vmi?: VirtualMachineInstance;
  launchers?: Pod[];
  claims?: IPAMClaim[];
  /** Default: blue and green, which allow persistent IPs on blue-net and green-net. */
  nads?: NetworkAttachmentDefinition[];
  gateClosed?: boolean;
  /** Default: true. */
  areNetworksKnown?: boolean;
  /** How many claims one VM may have. */
  maxClaims?: number;
  optedOut?: boolean;
  /** The namespace is being deleted. */
  isNamespaceDeleted?: boolean;
  /** How long a restored claim waits. Default: an hour. */
  restoreWaitMs?: number;
  /** The namespace has the label of OVN-Kubernetes for a primary network. */
  isPrimary?: boolean;
  /** Whether the feature gate PrimaryUserDefinedNetwork is on. */
  servesPrimaryNetworks?: boolean;
  /** The workload's name, where it is not vm1. */
  name?: string;
}

/** The time of each observation. */
export const NOW = '2026-01-01T12:00:00Z';

export const BLUE = nad('blue', { name: 'blue-net', allowPersistentIPs: true });
export const GREEN = nad('green', { name: 'green-net', allowPersistentIPs: true });
export const PLAIN_BLUE = nad('blue', { name: 'blue-net' });
export const BROKEN_BLUE = nad('blue', '{"name": "blue-net", "allowPersistentIPs": "yes"}');

/** Caches that hold the given objects, made small as in production. */
export function cachesOf(given: WorkloadScenario) {
  const labels = {
    ...(given.optedOut && { 'ipam.holdfast.dev/persistent-ips': 'disabled' }),
    ...(given.isPrimary && { 'k8s.ovn.org/primary-user-defined-network': '' }),
  };
  const deleted = given.isNamespaceDeleted === true ? { deletionTimestamp: NOW } : {};
  return {
    vms: filled(VM_INDEXES, [...(given.vm ? [given.vm] : []), ...(given.otherVms ?? [])], transformVm),
    vmis: filled(VMI_INDEXES, given.vmi ? [given.vmi] : [], transformVmi),
    launchers: filled(LAUNCHER_INDEXES, given.launchers ?? [], transformLauncher),
    claims: filled(CLAIM_INDEXES, given.claims ?? [], transformClaim),
    networks: filled(NAD_INDEXES, given.nads ?? [BLUE, GREEN], transformNad),
    namespaces: filled({}, [{ metadata: { name: NAMESPACE, labels, ...deleted } }], transformNamespace),
  };
}

export function observationOf(given: WorkloadScenario): ObservedWorkload {
  const listers = cachesOf(given);
  const key = `${NAMESPACE}/${given.name ?? 'vm1'}`;
  return observeWorkload(key, readWorkload(key, listers), listers, {
    isGateOpen: !given.gateClosed,
    areNetworksKnown: given.areNetworksKnown ?? true,
    servesPrimaryNetworks: given.servesPrimaryNetworks ?? false,
    maxClaims: given.maxClaims ?? 32,
    restoreWaitMs: given.restoreWaitMs ?? 3_600_000,
    ...{ now: Date.parse(NOW), earliestNow: Date.parse(NOW) },
  });
}

function filled<T extends KubeObject, S extends KubeObject>(
  indexes: Indexes<S>,
  objects: readonly T[],
  transform: (object: T) => S,
): Cache<S> {
  const cache = new Cache<S>(indexes);
  for (const object of objects) cache.set(transform(object));
  return cache;
}
