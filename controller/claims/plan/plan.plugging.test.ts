import { podInterfaceName } from '../../../api/pod.js';
import { swappedClaimName } from '../../../api/ipam-claim.js';
import { claim, claimOfIpamExtensions, launcher, nad, vm, vmi } from '../../../test/objects/workload-objects.js';
import { BLUE } from '../testing/workload-observation.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';

const SWAPPED = swappedClaimName('vm1', 'data', 'green-net');
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

  describe('for an interface whose NAD is swapped', () => {
    const green = claim({ name: SWAPPED, network: 'green-net', nad: 'vms/green' });
    const renamed = {
      vm: vm({ data: 'blue' }),
      vmi: vmi({ data: 'blue' }),
      claims: [claim(), claim({ name: SWAPPED, network: 'green-net', created: '2026-01-01T02:00:00Z' })],
      nads: [nad('blue', { name: 'green-net', allowPersistentIPs: true })],
    };
    const referringToNew = (created: string) =>
      launcher([{ nad: 'blue', claim: SWAPPED }], { status: [{ nad: 'blue' }], created });
    itPlansClaims([
      {
        name: 'creates a second claim in addition to the first',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'blue' }, { interfaces: plugged }),
          launchers: [running],
          claims: [claim()],
        },
        expect: ['keep vm1.data', `create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'creates the two claims one after the other if there is none yet',
        given: { vm: vm({ data: 'green' }), vmi: vmi({ data: 'blue' }) },
        expect: ['create vm1.data for vm-uid', 'wait for vm1.data'],
      },
      {
        name: 'keeps the first claim while the source of the migration uses it',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }, { interfaces: plugged }),
          launchers: [running, launcher([{ nad: 'green', claim: SWAPPED }], { name: 'target' })],
          claims: [claim(), green],
        },
        expect: ['wait for vm1.data', `keep ${SWAPPED}`],
      },
      {
        name: 'releases the first claim once the source is terminal although the VMI still reports the interface',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }, { interfaces: plugged }),
          launchers: [
            ended,
            launcher([{ nad: 'green', claim: SWAPPED }], { name: 'target', status: [{ nad: 'green' }] }),
          ],
          claims: [claim(), green],
        },
        expect: ['release vm1.data', `keep ${SWAPPED}`],
      },
      {
        name: 'releases the first claim although the new network allows no persistent addresses',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }, { interfaces: plugged }),
          launchers: [launcher([{ nad: 'green' }], { status: [{ nad: 'green' }] })],
          claims: [claim()],
          nads: [BLUE, nad('green', { name: 'green-net' })],
        },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps the first claim while Multus reports it, whatever the annotation says',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }),
          launchers: [launcher([{ nad: 'green', claim: SWAPPED }], { status: [{ nad: 'blue' }] })],
          claims: [claim(), green],
        },
        expect: ['wait for vm1.data', `keep ${SWAPPED}`],
      },
      {
        name: 'creates the second claim of a stopped VM at once and releases the first',
        given: { vm: vm({ data: 'green' }), claims: [claim()] },
        expect: ['release vm1.data', `create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'uses the second name although the first is free if a launcher waits for it',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }),
          launchers: [launcher([{ nad: 'green', claim: SWAPPED }])],
        },
        expect: [`create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'uses the first name if the launcher that referred to the second is terminal, or refers to it on another network',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }),
          launchers: [
            launcher([{ nad: 'green', claim: SWAPPED }], { phase: 'Failed' }),
            launcher([{ nad: 'blue', claim: SWAPPED }], { name: 'other' }),
            launcher([{ nad: 'green', network: 'extra', claim: SWAPPED }], { name: 'third' }),
          ],
        },
        expect: ['create vm1.data for vm-uid'],
      },
      {
        name: 'uses the first name again once it is free',
        given: { vm: vm({ data: 'blue' }), claims: [green] },
        expect: [`release ${SWAPPED}`, 'create vm1.data for vm-uid'],
      },
      {
        name: 'treats a NAD whose network was changed like a swapped NAD',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: 'blue' }),
          launchers: [running],
          claims: [claim()],
          nads: [nad('blue', { name: 'green-net', allowPersistentIPs: true })],
        },
        expect: ['wait for vm1.data', `create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'releases the claim of the former network once all launchers on the NAD are younger than the new claim and refer to it',
        given: { ...renamed, launchers: [referringToNew('2026-01-01T02:00:01Z')] },
        expect: ['release vm1.data', `keep ${SWAPPED}`],
      },
      {
        name: 'keeps the claim of the former network if the interface of an older launcher was plugged again before Multus had detached it',
        given: { ...renamed, launchers: [referringToNew('2026-01-01T02:00:00Z')] },
        expect: ['wait for vm1.data', `keep ${SWAPPED}`],
      },
    ]);
  });
});
