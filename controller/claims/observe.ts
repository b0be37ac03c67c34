import { type IPAMClaim, claimName, swappedClaimName } from '../../api/ipam-claim.js';
import type { Lister, NamespacedLister } from '../../kube/informers/cache.js';
import { type VirtualMachine, type VirtualMachineInstance, controllingVm } from '../../api/kubevirt.js';
import { type KubeObject, isBeingDeleted, joinKey, objectKey, splitKey } from '../../api/meta.js';
import { PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL, PRIMARY_CLAIM_ANNOTATION } from '../../api/names.js';
import type { Pod } from '../../api/pod.js';
import { BY_UID, BY_WORKLOAD } from '../../cluster/watch-specs.js';
import { hasNetworks } from '../../cluster/kubevirt-controller.js';
import { findPrimaryNetwork, hasPrimaryNetworkLabel } from '../../cluster/primary-network.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { BY_CLAIM } from '../caches.js';
import { type NetworkLookup, type ObservedWorkload, observeVm, observeVmi } from './plan/observed-workload.js';
import { refersTo } from './plan/references.js';

/** The objects that are also read live, to confirm a plan. */
export interface WorkloadObjects {
  vm: VirtualMachine | undefined;
  vmi: VirtualMachineInstance | undefined;
  /** At least those of a namespace, indexed by {@link LAUNCHER_INDEXES}. */
  launchers: Pick<Lister<Pod>, 'byIndex'>;
}

export interface Listers {
  vms: NamespacedLister<VirtualMachine>;
  vmis: NamespacedLister<VirtualMachineInstance>;
  launchers: Lister<Pod>;
  claims: NamespacedLister<IPAMClaim>;
  networks: Lister<ParsedNad>;
  namespaces: Lister<KubeObject>;
}

/** What a plan depends on, besides the objects. */
interface WorkloadSettings extends Pick<
  ObservedWorkload,
  'areNetworksKnown' | 'maxClaims' | 'restoreWaitMs' | 'now' | 'earliestNow'
> {
  isGateOpen: boolean;
  /** The feature gate for primary user-defined networks. */
  servesPrimaryNetworks: boolean;
}

/** Reads the workload of a key from the caches. */
export function readWorkload(key: string, listers: Listers): WorkloadObjects {
  return { vm: listers.vms.get(key), vmi: listers.vmis.get(key), launchers: listers.launchers };
}

/** Adds the cached claims and networks to a workload that was cached or read live. */
export function observeWorkload(
  key: string,
  workload: WorkloadObjects,
  listers: Listers,
  settings: WorkloadSettings,
): ObservedWorkload {
  const { namespace, name } = splitKey(key);
  const networks = new Map<string, NetworkLookup>();
  const claims = new Map(listers.claims.byIndex(BY_WORKLOAD, key).map((claim) => [claim.metadata.name, claim]));
  const addClaim = (claim: string) => {
    const found = listers.claims.get(joinKey(namespace, claim));
    if (found !== undefined) claims.set(claim, found);
  };
  const { areNetworksKnown, maxClaims, restoreWaitMs, now, earliestNow } = settings;
  const rules = {
    ...readNamespace(namespace, listers, settings),
    ...{ areNetworksKnown, maxClaims, restoreWaitMs, now, earliestNow },
  };
  const { primaryNetwork } = rules;
  const vm = workload.vm && observeVm(workload.vm, primaryNetwork);
  const vmi = workload.vmi && observeVmi(withVerifiedOwner(workload.vmi, listers), primaryNetwork);
  const addNetwork = (nadKey: string) => {
    const nad = areNetworksKnown ? listers.networks.get(nadKey) : undefined;
    networks.set(
      nadKey,
      nad === undefined
        ? { found: false }
        : { found: true, config: nad.config, delegation: nad.delegation.kind, delivery: nad.delivery },
    );
    return nad?.config;
  };
  for (const network of [vmi, vm].flatMap((owner) => [...(owner?.spec.servedNetworks.values() ?? [])])) {
    const config = addNetwork(network.nadKey);
    addClaim(claimName(name, network.name));
    if (config?.ok) addClaim(swappedClaimName(name, network.name, config.network.name));
  }
  for (const owner of [vmi, vm]) if (owner?.spec.replacement) addNetwork(owner.spec.replacement.nadKey);
  const found = [...claims.values()];
  const ofVmi = workload.launchers.byIndex(BY_WORKLOAD, key).filter(mayHaveClaims);
  const abandoned = found.flatMap((claim) =>
    workload.launchers.byIndex(BY_CLAIM, objectKey(claim)).filter((pod) => refersTo(pod, claim, rules)),
  );
  const launchers = [...ofVmi, ...new Set(abandoned)];
  return { namespace, name, ...rules, vm, vmi, launchers, claims: found, networks };
}

/** Reads what applies to all workloads of a namespace. */
function readNamespace(
  namespace: string,
  { namespaces, networks }: Listers,
  { isGateOpen, areNetworksKnown, servesPrimaryNetworks }: WorkloadSettings,
): Pick<ObservedWorkload, 'canCreateClaims' | 'isNamespaceDeleted' | 'needsPrimaryNetwork' | 'primaryNetwork'> {
  const object = namespaces.get(namespace);
  const needsPrimaryNetwork = servesPrimaryNetworks && hasPrimaryNetworkLabel(object);
  return {
    canCreateClaims: isGateOpen && object?.metadata.labels?.[PERSISTENT_IPS_LABEL] !== PERSISTENT_IPS_DISABLED,
    isNamespaceDeleted: object !== undefined && isBeingDeleted(object),
    needsPrimaryNetwork,
    primaryNetwork: needsPrimaryNetwork && areNetworksKnown ? findPrimaryNetwork(namespace, networks) : undefined,
  };
}

/** A launcher whose only network is a primary one has no other annotation. */
function mayHaveClaims(pod: Pod): boolean {
  return hasNetworks(pod) || pod.metadata.annotations?.[PRIMARY_CLAIM_ANNOTATION] !== undefined;
}

/** Removes owner references with the UID of a VM of another name: the creator of a VMI may write any UID. */
function withVerifiedOwner(vmi: VirtualMachineInstance, { vms }: Listers): VirtualMachineInstance {
  const owner = controllingVm(vmi);
  const named = owner === undefined ? [] : vms.byIndex(BY_UID, owner.uid);
  if (named.every((vm) => objectKey(vm) === objectKey(vmi))) return vmi;
  const { ownerReferences: _unverified, ...metadata } = vmi.metadata;
  return { ...vmi, metadata };
}
