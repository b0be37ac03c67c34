import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import { type ObjectMeta, isBeingDeleted } from '../api/meta.js';
import { DEFAULT_ROUTE_ANNOTATION, NETWORK_DATA_ANNOTATION, VIRTUAL_MACHINE_KIND } from '../api/names.js';
import { ownerOfVmi } from '../api/vm-claims.js';
import type { Lister } from '../kube/informers/cache.js';
import type { GuestWorkload } from './interfaces.js';

/** A VM with its VMI, or a VMI without a VM. */
export interface ObservedGuestWorkload extends GuestWorkload {
  /** Of the owner. */
  readonly metadata: ObjectMeta;
  /** Annotations of the template, or of a VMI without a VM. */
  readonly networkData: string | undefined;
  readonly defaultRoute: string | undefined;
  /** The VMI of this VM, if there is one. */
  readonly vmi: VirtualMachineInstance | undefined;
}

interface WorkloadListers {
  readonly vms: Lister<VirtualMachine>;
  readonly vmis: Lister<VirtualMachineInstance>;
}

/** @returns undefined if there is no such workload, or it is being deleted */
export function observeGuestWorkload(key: string, { vms, vmis }: WorkloadListers): ObservedGuestWorkload | undefined {
  const vm = vms.get(key);
  const vmi = vmis.get(key);
  if (vm !== undefined) return isBeingDeleted(vm) ? undefined : observeVm(vm, vmi);
  return vmi === undefined || isBeingDeleted(vmi) ? undefined : observeVmi(vmi);
}

/** The next start of a VM uses its template, not the spec of the VMI that runs. */
function observeVm(vm: VirtualMachine, vmi: VirtualMachineInstance | undefined): ObservedGuestWorkload {
  const { metadata } = vm;
  const { namespace = '', name, uid = '' } = metadata;
  const template = vm.spec?.template;
  return {
    ...{ namespace, metadata, owner: { kind: VIRTUAL_MACHINE_KIND, name, uid }, spec: template?.spec },
    ...requestsIn(template?.metadata?.annotations),
    vmi: vmi !== undefined && ownerOfVmi(vmi).uid === uid ? vmi : undefined,
  };
}

function observeVmi(vmi: VirtualMachineInstance): ObservedGuestWorkload {
  const { metadata, spec } = vmi;
  const { namespace = '', annotations } = metadata;
  return { namespace, metadata, owner: ownerOfVmi(vmi), spec, ...requestsIn(annotations), vmi };
}

function requestsIn(
  annotations: Record<string, string> = {},
): Pick<ObservedGuestWorkload, 'networkData' | 'defaultRoute'> {
  return { networkData: annotations[NETWORK_DATA_ANNOTATION], defaultRoute: annotations[DEFAULT_ROUTE_ANNOTATION] };
}
