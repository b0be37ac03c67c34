import { expect } from 'chai';
import { type ClaimScenario, ALLOCATED_CONDITION, observationOf, describeStep } from './testing/claim-observation.js';
import { vmReference } from '../../test/workload-objects.js';
import { plan } from './plan.js';
import type { LauncherVmis } from './vmi-owners.js';

describe('the next step of a claim whose launcher names a VMI', () => {
  const vmi = { name: 'vm1', uid: 'u1' };
  const given: ClaimScenario = {
    pool: 'v4',
    held: ['10.0.0.5'],
    ips: ['10.0.0.5/24'],
    conditions: [ALLOCATED_CONDITION],
  };

  function stepWith(vmis: Partial<LauncherVmis>): string {
    const observed = observationOf(given);
    const users = [{ metadata: { name: 'p1', namespace: 'vms', uid: 'p1' }, terminal: false, claims: [], vmi }];
    const none = new Set<string>();
    const claim = {
      ...observed.claim,
      metadata: { ...observed.claim.metadata, ownerReferences: [vmReference('vm-uid')] },
    };
    const named = { proven: none, unproven: none, due: none, ...vmis };
    return describeStep(
      plan({ ...observed, claim, pods: users, launcherVmis: named }, { isLive: true, arePodsLive: true }),
    );
  }

  it('is to read the VMI, before the pod becomes the owner of the claim', () => {
    expect(stepWith({ unproven: new Set(['u1']), due: new Set(['u1']) })).to.equal('look-at-vmi');
  });

  it('is to write the pod once its VMI is shown to be of the owner', () => {
    expect(stepWith({ proven: new Set(['p1']) })).to.equal('write [10.0.0.5/24] SuccessfulAllocation; owner p1');
  });

  it('is to write that no pod gets the addresses, while nobody knows who creates launchers', () => {
    expect(stepWith({ problem: 'kubevirtNamespace is wrong' })).to.equal(
      'write [10.0.0.5/24] SuccessfulAllocation; KubeVirtNamespaceUnknown: kubevirtNamespace is wrong',
    );
  });

  it('is none while the VMI proves nothing, and was read a moment ago', () => {
    expect(stepWith({ unproven: new Set(['u1']) })).to.match(/^none/);
  });
});
