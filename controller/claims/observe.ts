import { type IPAMClaim, claimName, swappedClaimName } from '../../api/ipam-claim.js';
import type { Lister } from '../../kube/cache.js';
import {
  type SecondaryNetwork,
  type VirtualMachine,
  type VirtualMachineInstance,
  controllingVm,
  secondaryNetworks,
} from '../../api/kubevirt.js';
import { type KubeObject, joinKey, objectKey, splitKey } from '../../api/meta.js';
import { PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../api/names.js';
import { type Pod, controllingVmi } from '../../api/pod.js';
import { BY_UID, BY_WORKLOAD } from '../../cluster/indexes.js';
import { hasNetworks } from '../../cluster/kubevirt-controller.js';
import type { ParsedNad } from '../../cluster/transforms.js';
import { orphanKey } from '../indexes.js';
import { refersTo } from './references.js';
import type { NetworkLookup, ObservedWorkload } from './observed-workload.js';

/** The objects of which only the API server knows the latest. */
export type WorkloadObjects = Pick<ObservedWorkload, 'vm' | 'vmi' | 'launchers'>;

export interface Listers {
  vms: Lister<VirtualMachine>;
  vmis: Lister<VirtualMachineInstance>;
  launchers: Lister<Pod>;
  claims: Lister<IPAMClaim>;
  networks: Lister<ParsedNad>;
  namespaces: Lister<KubeObject>;
}

/** Reads the workload of a key from the caches. */
export function readWorkload(key: string, listers: Listers): WorkloadObjects {
  const keys = [key, orphanKey(splitKey(key).namespace)];
  return {
    vm: listers.vms.get(key),
    vmi: listers.vmis.get(key),
    launchers: keys.flatMap((each) => listers.launchers.byIndex(BY_WORKLOAD, each)),
  };
}

/** Adds to a workload, cached or live, what the caches know of its claims and networks. */
export function observeWorkload(
  key: string,
  workload: WorkloadObjects,
  listers: Listers,
  { gateOpen, maxClaims }: { gateOpen: boolean; maxClaims: number },
): ObservedWorkload {
  const { namespace, name } = splitKey(key);
  const networks = new Map<string, NetworkLookup>();
  const claims = new Map(listers.claims.byIndex(BY_WORKLOAD, key).map((claim) => [claim.metadata.name, claim]));
  const take = (claim: string) => {
    const found = listers.claims.get(joinKey(namespace, claim));
    if (found !== undefined) claims.set(claim, found);
  };
  for (const network of networksOf(workload, namespace)) {
    const nad = joinKey(network.nad.namespace, network.nad.name);
    const attachment = listers.networks.get(nad);
    networks.set(nad, attachment === undefined ? { found: false } : { found: true, config: attachment.config });
    take(claimName(name, network.name));
    if (attachment?.config.ok) take(swappedClaimName(name, network.name, attachment.config.network.name));
  }
  const optedOut =
    listers.namespaces.get(namespace)?.metadata.labels?.[PERSISTENT_IPS_LABEL] === PERSISTENT_IPS_DISABLED;
  const found = [...claims.values()];
  const launchers = workload.launchers.filter((pod) =>
    controllingVmi(pod) === undefined ? found.some((claim) => refersTo(pod, claim)) : hasNetworks(pod),
  );
  const enabled = gateOpen && !optedOut;
  const vmi = workload.vmi && withVerifiedOwner(workload.vmi, listers);
  return {
    namespace,
    name,
    canCreateClaims: enabled,
    maxClaims,
    vm: workload.vm,
    vmi,
    launchers,
    claims: found,
    networks,
  };
}

/** Whoever makes a VMI writes its ownerReferences: one with the UID of a VM of another name is no VM's. */
function withVerifiedOwner(vmi: VirtualMachineInstance, { vms }: Listers): VirtualMachineInstance {
  const owner = controllingVm(vmi);
  const named = owner === undefined ? [] : vms.byIndex(BY_UID, owner.uid);
  if (named.every((vm) => objectKey(vm) === objectKey(vmi))) return vmi;
  const { ownerReferences: _forged, ...metadata } = vmi.metadata;
  return { ...vmi, metadata };
}

function networksOf({ vm, vmi }: WorkloadObjects, namespace: string): SecondaryNetwork[] {
  return [vmi?.spec, vm?.spec?.template?.spec].flatMap((spec) => secondaryNetworks(spec, namespace));
}
