import type { OwnerReference } from '../../api/meta.js';
import { LAUNCHER_LABEL } from '../../api/names.js';
import type { KubeVirtControllerSource } from '../../cluster/kubevirt-controller.js';

/** What the admission policies know a launcher by: the VMI that controls it, and its label. */
export const VMI_OWNER: OwnerReference = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  name: 'vm1',
  uid: 'u-1',
  controller: true,
};
export const LAUNCHER_LABELS = { [LAUNCHER_LABEL]: 'virt-launcher' };

const CONTROLLER = 'system:serviceaccount:kubevirt:kubevirt-controller';
/** KubeVirt is in the namespace of the policy parameters. */
export const KNOWN_KUBEVIRT: KubeVirtControllerSource = { controller: () => ({ username: CONTROLLER }) };
/** What its controller asks the webhook for. */
export const BY_KUBEVIRT = { username: CONTROLLER, kubevirt: { username: CONTROLLER } };
