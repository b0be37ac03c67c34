import { podInterfaceName } from '../../api/pod-interface.js';
import { swappedClaimName } from '../../api/ipam-claim.js';
import { claim, claimOfIpamExtensions, launcher, nad, vm, vmi } from '../../test/workload-objects.js';
import { BLUE } from './testing/workload-observation.js';
import { itPlansClaims } from './testing/claim-plan-cases.js';

const SWAPPED = swappedClaimName('vm1', 'data', 'green-net');
const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });
const ended = launcher([{ nad: 'blue', claim: 'vm1.data' }], { phase: 'Succeeded', status: [{ nad: 'blue' }] });
const plugged = [{ name: 'data', podInterfaceName: podInterfaceName('data') }];

describe('plan', () => {
  describe('for an interface that is unplugged', () => {
    const unplugged = launcher([], { status: [] });
    itPlansClaims([
      {
        name: 'releases the claim of a stopped VM',
        given: { vm: vm({}), claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'releases it where the interface is absent in a stopped VM',
        given: { vm: vm({ data: '!blue' }), claims: [claim()] },
        expect: ['release vm1.data'],
      },
      {
        name: 'holds it while a launcher asks for it',
        given: {
          vm: vm({ data: '!blue' }),
          vmi: vmi({ data: '!blue' }),
          launchers: [launcher([{ nad: 'blue', claim: 'vm1.data' }])],
          claims: [claim()],
        },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds it while a launcher asks for its interface without naming a claim',
        given: { vm: vm({}), vmi: vmi({}), launchers: [launcher([{ nad: 'blue' }])], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds it while a launcher of old asks for its ordinal interface',
        given: {
          vm: vm({}),
          vmi: vmi({ data: '!blue' }),
          launchers: [launcher([{ nad: 'blue', interface: 'net1' }])],
          claims: [claim()],
        },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds it while Multus reports the interface, though no launcher asks for it',
        given: {
          vm: vm({}),
          vmi: vmi({}),
          launchers: [launcher([], { status: [{ nad: 'blue' }] })],
          claims: [claim()],
        },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds it while the VMI reports the interface',
        given: { vm: vm({}), vmi: vmi({}, { interfaces: plugged }), launchers: [unplugged], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds it while a launcher’s annotation cannot be read',
        given: { vm: vm({}), vmi: vmi({}), launchers: [launcher('{"name"')], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'holds it while a launcher whose VMI is gone has it',
        given: { vm: vm({}), launchers: [running], claims: [claim()] },
        expect: ['wait for vm1.data'],
      },
      {
        name: 'releases it once annotation, network status and VMI are without it',
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
        name: 'does not count a launcher of another owner',
        given: {
          vm: vm({}),
          vmi: vmi({}, { vm: null }),
          launchers: [launcher([{ nad: 'blue' }])],
          claims: [claim()],
        },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps it where the interface is plugged again in between',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: '!blue' }),
          launchers: [unplugged],
          claims: [claim()],
        },
        expect: ['keep vm1.data'],
      },
      {
        name: 'keeps a claim of kubevirt/ipam-extensions of which no interface is known',
        given: { vm: vm({}), claims: [claimOfIpamExtensions({ name: 'vm1.primary' })] },
        expect: ['keep vm1.primary'],
      },
      {
        name: 'holds such a claim when it is deleted while the VM runs',
        given: { vm: vm({}), vmi: vmi({}), claims: [claimOfIpamExtensions({ name: 'vm1.primary', deleting: true })] },
        expect: ['wait for vm1.primary'],
      },
      {
        name: 'lets such a claim go when it is deleted while the VM is stopped',
        given: { vm: vm({}), claims: [claimOfIpamExtensions({ name: 'vm1.primary', deleting: true })] },
        expect: ['release vm1.primary'],
      },
      {
        name: 'does not touch a claim that names the VM, but has neither our finalizer nor our annotations',
        given: { vm: vm({}), claims: [claimOfIpamExtensions({ finalizers: [] })] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'releases a claim that was deleted besides',
        given: { vm: vm({}), vmi: vmi({}), launchers: [unplugged], claims: [claim({ deleting: true })] },
        expect: ['release vm1.data'],
      },
    ]);
  });

  describe('for an interface whose NAD is swapped', () => {
    const green = claim({ name: SWAPPED, network: 'green-net', nad: 'vms/green' });
    itPlansClaims([
      {
        name: 'creates a second claim beside the first',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'blue' }, { interfaces: plugged }),
          launchers: [running],
          claims: [claim()],
        },
        expect: ['keep vm1.data', `create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'creates one after the other where there is none yet',
        given: { vm: vm({ data: 'green' }), vmi: vmi({ data: 'blue' }) },
        expect: ['create vm1.data for vm-uid', 'wait for vm1.data'],
      },
      {
        name: 'holds the first while the source of the migration has it',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }, { interfaces: plugged }),
          launchers: [running, launcher([{ nad: 'green', claim: SWAPPED }], { name: 'target' })],
          claims: [claim(), green],
        },
        expect: ['wait for vm1.data', `keep ${SWAPPED}`],
      },
      {
        name: 'releases the first once the source has ended, though the VMI still reports the interface',
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
        name: 'releases the first although the new network allows no persistent addresses',
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
        name: 'holds the first while Multus reports it, whatever the annotation says by now',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }),
          launchers: [launcher([{ nad: 'green', claim: SWAPPED }], { status: [{ nad: 'blue' }] })],
          claims: [claim(), green],
        },
        expect: ['wait for vm1.data', `keep ${SWAPPED}`],
      },
      {
        name: 'gives a stopped VM the second at once and releases the first',
        given: { vm: vm({ data: 'green' }), claims: [claim()] },
        expect: ['release vm1.data', `create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'gives the second its name although the first is gone where a launcher waits for it',
        given: {
          vm: vm({ data: 'green' }),
          vmi: vmi({ data: 'green' }),
          launchers: [launcher([{ nad: 'green', claim: SWAPPED }])],
        },
        expect: [`create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'gives it the first name where the launcher that asked for the second has ended, or asks on another network',
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
        name: 'goes back to the first name once it is free',
        given: { vm: vm({ data: 'blue' }), claims: [green] },
        expect: [`release ${SWAPPED}`, 'create vm1.data for vm-uid'],
      },
      {
        name: 'treats a NAD that was changed to another network alike',
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
        name: 'releases the claim of the former network once the launchers that report the NAD have the new claim',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: 'blue' }),
          launchers: [launcher([{ nad: 'blue', claim: SWAPPED }], { status: [{ nad: 'blue' }] })],
          claims: [claim({}), claim({ name: SWAPPED, network: 'green-net' })],
          nads: [nad('blue', { name: 'green-net', allowPersistentIPs: true })],
        },
        expect: ['release vm1.data', `keep ${SWAPPED}`],
      },
    ]);
  });
});
