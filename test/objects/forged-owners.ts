import type { OwnerReference } from '../../api/meta.js';
import { VMI_OWNER } from './launcher-pods.js';

/**
 * Owner references of a pod that a tenant may write, and how both the admission policies and the code must read them.
 * `vmi`: a VirtualMachineInstance owns the pod, so only KubeVirt may create it. `malformed`: denied for every user.
 * `other`: an owner of another kind, so the pod is an ordinary one. `invalid`: the API server itself refuses it.
 */
export interface ForgedOwner {
  readonly name: string;
  readonly owners: readonly OwnerReference[];
  readonly reading: 'vmi' | 'malformed' | 'other' | 'invalid';
  /** The VMI is the controller, so the pod is a launcher once KubeVirt has created it. */
  readonly isController?: true;
}

const OTHER: OwnerReference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: 'u-9', controller: true };

function vmi(change: Partial<OwnerReference>): OwnerReference[] {
  return [{ ...VMI_OWNER, ...change }];
}

function ofVersion(apiVersion: string, verdict: ForgedOwner['reading']): ForgedOwner {
  const name = `apiVersion ${JSON.stringify(apiVersion)}`;
  return { name, owners: vmi({ apiVersion }), reading: verdict, ...(verdict === 'vmi' && { isController: true }) };
}

function withoutController(): OwnerReference[] {
  const { controller: _, ...owner } = VMI_OWNER;
  return [owner];
}

export const FORGED_OWNERS: readonly ForgedOwner[] = [
  ofVersion('kubevirt.io/v1', 'vmi'),
  ofVersion('kubevirt.io/v1alpha3', 'vmi'),
  ofVersion('kubevirt.io/v2beta1', 'vmi'),
  ofVersion('kubevirt.io/v10', 'vmi'),
  ofVersion('kubevirt.io', 'malformed'),
  ofVersion('kubevirt.io/V1', 'malformed'),
  ofVersion('kubevirt.io/1', 'malformed'),
  ofVersion('kubevirt.io/v', 'malformed'),
  ofVersion('kubevirt.io/v0', 'malformed'),
  ofVersion('kubevirt.io/v1alpha', 'malformed'),
  ofVersion('kubevirt.io/v1gamma1', 'malformed'),
  ofVersion('kubevirt.io/v1 ', 'malformed'),
  ofVersion('kubevirt.io/v1\n', 'malformed'),
  ofVersion('kubevirt.io/ v1', 'malformed'),
  ofVersion('kubevirt.io/v\u0661', 'malformed'),
  ofVersion('kubevirt.io/\u2170', 'malformed'),
  ofVersion('kubevirt.io/', 'invalid'),
  ofVersion('kubevirt.io/v1/', 'invalid'),
  ofVersion('kubevirt.io//v1', 'invalid'),
  ofVersion('kubevirt.io/v1/v1', 'invalid'),
  ofVersion('', 'invalid'),
  ofVersion('v1', 'other'),
  ofVersion('/v1', 'other'),
  ofVersion(' kubevirt.io/v1', 'other'),
  ofVersion('\nkubevirt.io/v1', 'other'),
  ofVersion('KubeVirt.io/v1', 'other'),
  ofVersion('kubevirt.io./v1', 'other'),
  ofVersion('kubevirt\u3002io/v1', 'other'),
  ofVersion('kubev\u0131rt.io/v1', 'other'),
  ofVersion('kubevirtxio/v1', 'other'),
  ofVersion('kubevirt.iox/v1', 'other'),
  ofVersion('x.kubevirt.io/v1', 'other'),
  ofVersion('xkubevirt.io/v1', 'other'),
  { name: 'kind in lower case', owners: vmi({ kind: 'virtualmachineinstance' }), reading: 'other' },
  { name: 'kind with a trailing space', owners: vmi({ kind: 'VirtualMachineInstance ' }), reading: 'other' },
  { name: 'the list kind', owners: vmi({ kind: 'VirtualMachineInstanceList' }), reading: 'other' },
  { name: 'kind VirtualMachine', owners: vmi({ kind: 'VirtualMachine' }), reading: 'other' },
  { name: 'controller false', owners: vmi({ controller: false }), reading: 'vmi' },
  { name: 'controller absent', owners: withoutController(), reading: 'vmi' },
  {
    name: 'another controller, and the VMI as an ordinary owner',
    owners: [OTHER, ...vmi({ controller: false })],
    reading: 'vmi',
  },
  {
    name: 'the VMI as controller after another owner',
    owners: [{ ...OTHER, controller: false }, VMI_OWNER],
    reading: 'vmi',
    isController: true,
  },
  { name: 'two controllers', owners: [OTHER, VMI_OWNER], reading: 'invalid' },
  { name: 'two controllers, the VMI first', owners: [VMI_OWNER, OTHER], reading: 'invalid' },
  { name: 'two VMI controllers', owners: [VMI_OWNER, { ...VMI_OWNER, name: 'vm2', uid: 'u-2' }], reading: 'invalid' },
  {
    name: 'a malformed reference after one that is well formed',
    owners: [{ ...VMI_OWNER, controller: false }, ...vmi({ apiVersion: 'kubevirt.io', uid: 'u-2' })],
    reading: 'malformed',
  },
];
