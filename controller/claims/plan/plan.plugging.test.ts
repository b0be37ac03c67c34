import { podInterfaceName } from '../../../api/pod.js';
import { claim, claimOfIpamExtensions, launcher, vm, vmi } from '../../../test/objects/workload-objects.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';

const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });
const ended = launcher([{ nad: 'blue', claim: 'vm1.data' }], { phase: 'Succeeded', status: [{ nad: 'blue' }] });
const plugged = [{ name: 'data', podInterfaceName: podInterfaceName('data') }];

const DEVICE = { networks: [{ name: 'data', resourceClaim: {} }] };
const withDevice = <T>(owner: T): T => ({ ...owner, spec: { template: { spec: DEVICE } } });
const ofPodNetworksName = claim({ name: 'vm1.default', vmNetwork: 'default' });

describe('the plan', () => {
  describe('for an interface that is unplugged', () => {
    const unplugged = launcher([], { status: [] });
    itPlansClaims([
      {
        name: 'releases the claim of a stopped VM',
        given: { vm: vm({}), claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases the claim of an interface that is absent in a stopped VM',
        given: { vm: vm({ data: '!blue' }), claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases the claim of a stopped VM whose pod network has the name of the interface now',
        given: { vm: vm({}), claims: [ofPodNetworksName] },
        expect: ['release vm1.default'],
      },
      {
        name: 'releases the claim of a running VM whose pod network has the name of the interface now',
        given: {
          vm: vm({}),
          vmi: vmi({}, { interfaces: [{ name: 'default', podInterfaceName: 'eth0' }] }),
          launchers: [launcher([], { status: [] })],
          claims: [ofPodNetworksName],
        },
        expect: ['release vm1.default'],
      },
      {
        name: 'keeps the claim of an interface with the name of the pod network while an earlier launcher has it',
        given: {
          vm: vm({}),
          vmi: vmi({}),
          launchers: [launcher([{ nad: 'blue', network: 'default', claim: 'vm1.default' }], { vmi: 'earlier' })],
          claims: [ofPodNetworksName],
        },
        expect: ['wait for vm1.default'],
      },
      {
        name: 'releases the claim of an interface whose name a device of a ResourceClaim has now',
        given: {
          vm: withDevice(vm({})),
          vmi: { ...vmi({}, { interfaces: plugged }), spec: DEVICE },
          launchers: [launcher([], { status: [] })],
          claims: [claim()],
        },
        expect: ['release vm1.data', 'refuse NetworkNotServed on vm'],
      },
      {
        name: 'keeps the claim while a launcher refers to it',
        given: {
          vm: vm({ data: '!blue' }),
          vmi: vmi({ data: '!blue' }),
          launchers: [launcher([{ nad: 'blue', claim: 'vm1.data' }])],
          claims: [claim()],
        },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while a launcher selects its interface without a claim',
        given: { vm: vm({}), vmi: vmi({}), launchers: [launcher([{ nad: 'blue' }])], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while an old launcher selects its ordinal interface',
        given: {
          vm: vm({}),
          vmi: vmi({ data: '!blue' }),
          launchers: [launcher([{ nad: 'blue', interface: 'net1' }])],
          claims: [claim()],
        },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while Multus reports the interface although no launcher selects it',
        given: {
          vm: vm({}),
          vmi: vmi({}),
          launchers: [launcher([], { status: [{ nad: 'blue' }] })],
          claims: [claim()],
        },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while the VMI reports the interface',
        given: { vm: vm({}), vmi: vmi({}, { interfaces: plugged }), launchers: [unplugged], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while a launcher’s annotation is unreadable',
        given: { vm: vm({}), vmi: vmi({}), launchers: [launcher('{"name"')], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'keeps the claim while a launcher whose VMI is gone uses it',
        given: { vm: vm({}), launchers: [running], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'releases the claim once annotation, network status and VMI no longer have the interface',
        given: {
          vm: vm({ extra: 'blue' }),
          vmi: vmi({ extra: 'blue' }, { interfaces: [{ name: 'extra' }] }),
          launchers: [
            launcher([{ nad: 'blue', network: 'extra', claim: 'vm1.extra' }], {
              status: [{ nad: 'blue', network: 'extra' }],
            }),
            ended,
          ],
          claims: [claim(), claim({ name: 'vm1.extra', vmNetwork: 'extra' })],
        },
        expect: ['release vm1.data', 'keep vm1.extra'],
      },
      {
        name: 'releases the claim although a launcher of another owner uses the interface',
        given: { vm: vm({}), vmi: vmi({}, { vm: null }), launchers: [launcher([{ nad: 'blue' }])], claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps the claim if the interface is plugged in again',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: '!blue' }), launchers: [unplugged], claims: [claim()] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'keeps a claim of kubevirt/ipam-extensions whose interface is unknown',
        given: { vm: vm({}), claims: [claimOfIpamExtensions({ name: 'vm1.primary' })] },
        expect: ['keep vm1.primary'],
      },
      {
        name: 'keeps a deleted claim whose interface is unknown while the VM runs',
        given: { vm: vm({}), vmi: vmi({}), claims: [claimOfIpamExtensions({ name: 'vm1.primary', deleting: true })] },
        expect: ['wait for vm1.primary, IPAMClaimInUse on the claim and its owner'],
      },
      {
        name: 'releases a deleted claim whose interface is unknown while the VM is stopped',
        given: { vm: vm({}), claims: [claimOfIpamExtensions({ name: 'vm1.primary', deleting: true })] },
        expect: ['release vm1.primary'],
      },
      {
        name: 'does not change a claim that names the VM but has neither our finalizer nor our annotations',
        given: { vm: vm({}), claims: [claimOfIpamExtensions({ finalizers: [] })] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'releases a claim that a user deleted as well',
        given: { vm: vm({}), vmi: vmi({}), launchers: [unplugged], claims: [claim({ deleting: true })] },
        expect: ['release vm1.data'],
      },
    ]);
  });
});
