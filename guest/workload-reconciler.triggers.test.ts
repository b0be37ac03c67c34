import { expect } from 'chai';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import { CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from '../cluster/watch-specs.js';
import type { ParsedNad } from '../cluster/transforms.js';
import { Cache } from '../kube/informers/cache.js';
import type { ObjectChange } from '../kube/informers/informer.js';
import { nad } from '../test/objects/pool-objects.js';
import { claim, vm } from '../test/objects/workload-objects.js';
import { NETWORK_INDEXES } from '../addressing/directory/affected.js';
import type { NetworkChanges } from '../addressing/directory/directory.js';
import { BY_SECRET, secretKeysOf } from './watch-specs.js';
import { WorkloadReconciler, type WorkloadReconcilerDeps } from './workload-reconciler.js';

describe('the triggers of the reconciler of workloads', () => {
  const claims = new Cache<IPAMClaim>({ ...CLAIM_INDEXES, ...NETWORK_INDEXES });
  const vms = new Cache<VirtualMachine>({ ...VM_INDEXES, [BY_SECRET]: secretKeysOf });
  const vmis = new Cache<VirtualMachineInstance>({ ...VMI_INDEXES, [BY_SECRET]: secretKeysOf });
  let woken: string[];
  let vmChanged: (change: ObjectChange<VirtualMachine>) => void;
  let nadChanged: (change: ObjectChange<ParsedNad>) => void;
  let networksChanged: (changes: NetworkChanges) => void;

  beforeEach(() => {
    vms.set(vm({ data: 'data' }));
    claims.set(claim({ network: 'data' }));
    woken = [];
    const ignored = (cache: unknown) => ({ cache, onChange: () => undefined });
    const watched = {
      ...{
        vms: { cache: vms, onChange: (handler: typeof vmChanged) => (vmChanged = handler) },
        vmis: ignored(vmis),
        claims: ignored(claims),
        namespaces: ignored(new Cache()),
      },
      lockedLeases: ignored(new Cache()),
      networks: { onChange: (handler: typeof nadChanged) => (nadChanged = handler) },
    };
    const directory = { onChange: (handler: typeof networksChanged) => (networksChanged = handler) };
    const views = { watched, directory, onGateChange: () => undefined };
    // only the watches are used here
    const reconciler = new WorkloadReconciler({ views } as unknown as WorkloadReconcilerDeps);
    reconciler.listen((keys) => woken.push(...keys));
  });

  it('wake the VMs of a NAD when its config changes, but not when its labels do', () => {
    const before = nad('vms/data', { name: 'data' });
    const relabelled = { ...before, metadata: { ...before.metadata, resourceVersion: '2' } };
    nadChanged({ type: 'changed', object: relabelled, before });
    expect(woken).to.deep.equal([]);
    nadChanged({ type: 'changed', object: nad('vms/data', { name: 'data', type: 'bridge' }), before });
    expect(woken).to.deep.equal(['vms/vm1']);
  });

  it('wake the owners of the claims of a network that changes, if their namespace is affected', () => {
    networksChanged(new Map([['other', undefined]]));
    networksChanged(new Map([['data', new Set(['elsewhere'])]]));
    expect(woken).to.deep.equal([]);
    networksChanged(new Map([['data', undefined]]));
    networksChanged(new Map([['data', new Set(['vms'])]]));
    expect(woken).to.deep.equal(['vms/vm1', 'vms/vm1']);
  });

  it('wake the VMs that name the Secret of a VM that changes, unless they are too many for any of them to have it', () => {
    const volumes = [{ cloudInitNoCloud: { networkDataSecretRef: { name: 'net' } } }];
    const named = (index: number): VirtualMachine => {
      const { metadata, spec } = vm({}, { name: `user-${index}` });
      return { metadata, spec: { ...spec, template: { spec: { ...spec?.template?.spec, volumes } } } };
    };
    for (let index = 0; index < 17; index++) vms.set(named(index));
    vmChanged({ type: 'added', object: named(16) });
    expect(new Set(woken).size).to.equal(17);
    woken = [];
    vms.set(named(17));
    vmChanged({ type: 'added', object: named(17) });
    expect(woken).to.deep.equal(['vms/user-17']);
  });
});
