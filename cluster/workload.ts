import type { ClaimOwner } from '../api/ipam-claim.js';
import { type SecondaryNetwork, type VirtualMachineInstance, secondaryNetworks } from '../api/kubevirt.js';
import { type KubeObject, joinKey } from '../api/meta.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE, VIRTUAL_MACHINE_KIND } from '../api/names.js';
import { podInterfaceName } from '../api/pod-interface.js';
import { type Pod, controllingVmi } from '../api/pod.js';
import { ownerOfVmi } from '../api/vm-claims.js';
import type { ClusterView, Recheck } from './cluster-view.js';

/** Whom a launcher pod runs. */
export interface Workload {
  namespace: string;
  /** The VMI's name. */
  vmi: string;
  /** Owner of the claims: the VM, or a VMI that has none. */
  owner: ClaimOwner;
  networks: readonly VmiNetwork[];
}

export interface VmiNetwork extends SecondaryNetwork {
  /** The name that KubeVirt gives its interface in the pod. */
  podInterface: string;
}

export type WorkloadLookup =
  | { found: true; workload: Workload }
  | { found: false; check: 'controlled-by-vmi' | 'vmi-exists' | 'vm-exists'; reason: string };

interface WorkloadLookupContext {
  view: ClusterView;
  doubt: (doubt: Recheck) => void;
}

/**
 * Follows pod → VMI → VM by UID. Labels and names prove nothing: anybody may write them. The reasons name no UIDs, because anybody may be
 * refused.
 * @returns where the chain breaks, the check that found it and the rest of a sentence about the pod
 */
export function findWorkload(pod: Pod, namespace: string, sight: WorkloadLookupContext): WorkloadLookup {
  const controller = controllingVmi(pod);
  if (controller === undefined) {
    const reason =
      `has the label ${LAUNCHER_LABEL}=${LAUNCHER_LABEL_VALUE}, but no VirtualMachineInstance controls it: ` +
      'only KubeVirt makes launcher pods; remove the label';
    return { found: false, check: 'controlled-by-vmi', reason };
  }
  const { view, doubt } = sight;
  const { name, uid } = controller;
  const seen = view.vmi(name);
  if (seen?.metadata.uid === uid) return verifyOwner(workloadOf(seen, namespace), sight);
  doubt({ kind: 'vmi', key: name });
  const key = joinKey(namespace, name);
  return {
    found: false,
    check: 'vmi-exists',
    reason: `is controlled by VirtualMachineInstance ${key}, ${describeMismatch(seen, view)}`,
  };
}

/** Who may create a VMI may write that any VM controls it: only a VM of that name and UID does. */
function verifyOwner(workload: Workload, { view, doubt }: WorkloadLookupContext): WorkloadLookup {
  const { kind, name, uid } = workload.owner;
  if (kind !== VIRTUAL_MACHINE_KIND) return { found: true, workload };
  const seen = view.vm(name);
  if (seen?.metadata.uid === uid) return { found: true, workload };
  doubt({ kind: 'vm', key: name });
  const [vmi, vm] = [workload.vmi, name].map((each) => joinKey(workload.namespace, each));
  return {
    found: false,
    check: 'vm-exists',
    reason: `is of VirtualMachineInstance ${vmi}, controlled by VirtualMachine ${vm}, ${describeMismatch(seen, view)}`,
  };
}

function describeMismatch(seen: KubeObject | undefined, { lookupFailure }: ClusterView): string {
  if (lookupFailure !== undefined) return `which could not be looked for: ${lookupFailure}`;
  return seen === undefined ? 'which does not exist' : 'but another object has that name now: its UID differs';
}

function workloadOf(vmi: VirtualMachineInstance, namespace: string): Workload {
  const { name } = vmi.metadata;
  return {
    namespace,
    vmi: name,
    owner: ownerOfVmi(vmi),
    networks: secondaryNetworks(vmi.spec, namespace).map((network) => ({
      ...network,
      podInterface: podInterfaceName(network.name),
    })),
  };
}
