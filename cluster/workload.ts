import type { ClaimOwner } from '../api/ipam-claim.js';
import {
  type SecondaryNetwork,
  type VirtualMachineInstance,
  podNetworkOf,
  secondaryNetworks,
} from '../api/kubevirt.js';
import { type KubeObject, joinKey } from '../api/meta.js';
import { LAUNCHER_LABEL, LAUNCHER_LABEL_VALUE, VIRTUAL_MACHINE_KIND } from '../api/names.js';
import { type Pod, controllingVmi, podInterfaceName } from '../api/pod.js';
import { ownerOfVmi } from '../api/vm-claims.js';
import type { ClusterView, Recheck } from './cluster-view.js';

/** The workload of a launcher pod. */
export interface Workload {
  namespace: string;
  /** The VMI's name. */
  vmi: string;
  /** Owner of the claims: the VM, or the VMI without a VM. */
  owner: ClaimOwner;
  networks: readonly VmiNetwork[];
  /** The name of the network that connects the VM to the pod's own network, if it has one. */
  podNetwork: string | undefined;
}

export interface VmiNetwork extends SecondaryNetwork {
  /** The name of its interface in the pod, as KubeVirt generates it. */
  podInterface: string;
}

type WorkloadLookup =
  | { found: true; workload: Workload }
  | { found: false; check: 'controlled-by-vmi' | 'vmi-exists' | 'vm-exists'; reason: string };

interface WorkloadLookupContext {
  view: ClusterView;
  addRecheck: (recheck: Recheck) => void;
}

/**
 * Follows pod → VMI → VM by UID. Labels and names prove nothing, because tenants can write them. Reasons contain no UIDs, because every user
 * may read them.
 * @returns the workload; or the check that failed, with the rest of a sentence about the pod
 */
export function findWorkload(pod: Pod, namespace: string, context: WorkloadLookupContext): WorkloadLookup {
  const controller = controllingVmi(pod);
  if (controller === undefined) {
    const reason =
      `has the label ${LAUNCHER_LABEL}=${LAUNCHER_LABEL_VALUE}, but no VirtualMachineInstance controls it: ` +
      'only KubeVirt creates launcher pods; remove the label';
    return { found: false, check: 'controlled-by-vmi', reason };
  }
  const { view, addRecheck } = context;
  const { name, uid } = controller;
  const seen = view.vmi(name);
  if (seen?.metadata.uid === uid) return verifyOwner(workloadOf(seen, namespace), context);
  addRecheck({ kind: 'vmi', key: name });
  const key = joinKey(namespace, name);
  return {
    found: false,
    check: 'vmi-exists',
    reason: `is controlled by VirtualMachineInstance ${key}, ${describeMismatch(seen, view)}`,
  };
}

/** Checks that the VM exists with this name and UID, because the creator of a VMI can name any VM as its controller. */
function verifyOwner(workload: Workload, { view, addRecheck }: WorkloadLookupContext): WorkloadLookup {
  const { kind, name, uid } = workload.owner;
  if (kind !== VIRTUAL_MACHINE_KIND) return { found: true, workload };
  const seen = view.vm(name);
  if (seen?.metadata.uid === uid) return { found: true, workload };
  addRecheck({ kind: 'vm', key: name });
  const [vmi, vm] = [workload.vmi, name].map((each) => joinKey(workload.namespace, each));
  return {
    found: false,
    check: 'vm-exists',
    reason: `belongs to VirtualMachineInstance ${vmi}, controlled by VirtualMachine ${vm}, ${describeMismatch(seen, view)}`,
  };
}

function describeMismatch(seen: KubeObject | undefined, { lookupFailure }: ClusterView): string {
  if (lookupFailure !== undefined) return `which could not be read: ${lookupFailure}`;
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
    podNetwork: podNetworkOf(vmi.spec),
  };
}
