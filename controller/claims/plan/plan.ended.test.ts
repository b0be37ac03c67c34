import { expect } from 'chai';
import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import {
  type Networks,
  type VmiOptions,
  claim,
  launcher,
  vm,
  vmi,
  vmiReference,
} from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { observationOf } from '../testing/workload-observation.js';
import { plan } from './plan.js';

const ELEMENTS = [{ nad: 'blue', claim: 'vm1.data' }];
const done = launcher(ELEMENTS, { phase: 'Succeeded', status: [{ nad: 'blue' }] });
const running = launcher(ELEMENTS, { status: [{ nad: 'blue' }] });
const used = claim({ ips: ['10.0.0.5/24'] });
const deleted = claim({ ips: ['10.0.0.5/24'], deleting: true });

function endedVmi(networks: Networks = { data: 'blue' }, options: VmiOptions = {}): VirtualMachineInstance {
  const made = vmi(networks, { interfaces: [{ name: 'data' }], ...options });
  return { ...made, status: { ...made.status, phase: 'Succeeded' } };
}

function requestingVm() {
  const made = vm({ data: 'blue' });
  const annotations = { 'network.kubevirt.io/addresses': '{"data": ["10.0.0.9"]}' };
  Object.assign(made.spec?.template ?? {}, { metadata: { annotations } });
  return made;
}

describe('the plan', () => {
  describe('for a VM whose guest has ended, and whose VMI KubeVirt keeps', () => {
    it('requests the addresses of its template, as for a stopped VM', () => {
      const given = { vm: requestingVm(), vmi: endedVmi(), launchers: [done], claims: [used] };
      const actions = plan(observationOf(given));
      expect(actions.map((action) => action.kind === 'update' && action.set.annotations)).to.deep.equal([
        { 'ipam.holdfast.dev/requested-addresses': '["10.0.0.9"]', 'ipam.holdfast.dev/request-origin': 'template' },
      ]);
    });

    itPlansClaims([
      {
        name: 'requests no other addresses while its launcher runs',
        given: { vm: requestingVm(), vmi: endedVmi(), launchers: [running], claims: [used] },
        expect: ['keep vm1.data', 'refuse RequestedAddressesPending on vm'],
      },
      {
        name: 'keeps its claim',
        given: { vm: vm({ data: 'blue' }), vmi: endedVmi(), launchers: [done], claims: [used] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'replaces its deleted claim',
        given: { vm: vm({ data: 'blue' }), vmi: endedVmi(), launchers: [done], claims: [deleted] },
        expect: ['release vm1.data, then create it'],
      },
      {
        name: 'keeps its deleted claim while its launcher runs',
        given: { vm: vm({ data: 'blue' }), vmi: endedVmi(), launchers: [done, running], claims: [deleted] },
        expect: ['wait for vm1.data, IPAMClaimInUse on the claim and its owner'],
      },
      {
        name: 'releases the claim of an interface that was removed from its template',
        given: { vm: vm({}), vmi: endedVmi(), launchers: [done], claims: [used] },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps the claim of a removed interface while its launcher runs',
        given: { vm: vm({}), vmi: endedVmi(), launchers: [running], claims: [used] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'waits for the VMI of a VM that is being deleted',
        given: { vm: vm({ data: 'blue' }, { deleting: true }), vmi: endedVmi(), launchers: [done], claims: [used] },
        expect: ['wait for vm1.data'],
      },
    ]);
  });

  describe('for a VMI without a VM whose guest has ended', () => {
    itPlansClaims([
      {
        name: 'keeps its deleted claim until the VMI is gone',
        given: {
          vmi: endedVmi({ data: 'blue' }, { vm: null }),
          launchers: [done],
          claims: [claim({ owner: vmiReference('vmi-uid'), deleting: true })],
        },
        expect: ['wait for vm1.data, IPAMClaimInUse on the claim and its owner'],
      },
    ]);
  });
});
