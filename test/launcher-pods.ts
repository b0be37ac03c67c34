import type { OwnerReference } from '../api/meta.js';
import { LAUNCHER_LABEL } from '../api/names.js';

/** What the admission policies know a launcher by: the VMI that controls it, and its label. */
export const VMI_OWNER: OwnerReference = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name: 'vm1',
  uid: 'u-1',
  controller: true,
};
export const LAUNCHER_LABELS = { [LAUNCHER_LABEL]: 'virt-launcher' };
