import { podInterfaceName } from '../../../api/pod.js';
import { swappedClaimName } from '../../../api/ipam-claim.js';
import { claim, launcher, nad, vm, vmi } from '../../../test/objects/workload-objects.js';
import { BLUE } from '../testing/workload-observation.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';

const SWAPPED = swappedClaimName('vm1', 'data', 'green-net');
const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });
const ended = launcher([{ nad: 'blue', claim: 'vm1.data' }], { phase: 'Succeeded', status: [{ nad: 'blue' }] });
const plugged = [{ name: 'data', podInterfaceName: podInterfaceName('data') }];

/** On blue, while KubeVirt has written the annotation again from the VMI. */
const onBlue = launcher([{ nad: 'green' }]);
onBlue.metadata.annotations!['k8s.v1.cni.cncf.io/network-status'] = JSON.stringify([
  { name: 'vms/blue', interface: podInterfaceName('data'), ips: ['10.0.0.5'] },
]);

/** From blue to another NAD of its network, and then to green. */
const swappedTwice = {
  vm: vm({ data: 'green' }),
  vmi: vmi({ data: 'green' }),
  claims: [claim({ nad: 'vms/blue2', ips: ['10.0.0.5/24'] })],
};

describe('the plan', () => {
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
    const ofBlue = claim({ created: '2026-01-01T01:00:00Z' });
    const ofGreen = claim({ name: SWAPPED, network: 'green-net', created: '2026-01-01T02:00:00Z' });
    const renamedBack = {
      vm: vm({ data: 'blue' }),
      vmi: vmi({ data: 'blue' }),
      launchers: [
        launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }], created: '2026-01-01T03:00:00Z' }),
      ],
    };
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
        name: 'keeps the first claim while Multus reports it, also if the annotation names the second',
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
        name: 'keeps the younger claim of a network without IPAM whose name the NAD lost again, because a launcher may have it',
        given: { ...renamedBack, claims: [ofBlue, { ...ofGreen, status: { ips: ['10.1.0.5/24'] } }] },
        expect: ['keep vm1.data', `wait for ${SWAPPED}`],
      },
      {
        name: 'releases such a claim if it has no address',
        given: { ...renamedBack, claims: [ofBlue, ofGreen] },
        expect: ['keep vm1.data', `release ${SWAPPED}`],
      },
      {
        name: 'keeps the claim of the former network if the interface of an older launcher was plugged again before Multus had detached it',
        given: { ...renamed, launchers: [referringToNew('2026-01-01T02:00:00Z')] },
        expect: ['wait for vm1.data', `keep ${SWAPPED}`],
      },
      {
        name: 'keeps the claim that names another NAD of its network after another swap while a launcher has its address on the first NAD',
        given: { ...swappedTwice, launchers: [onBlue] },
        expect: ['wait for vm1.data', `create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'keeps the claim that names another NAD of its network also if the first NAD has no IPAM, so that Multus reports no address',
        given: { ...swappedTwice, launchers: [launcher([{ nad: 'green' }], { status: [{ nad: 'blue' }] })] },
        expect: ['wait for vm1.data', `create ${SWAPPED} for vm-uid`],
      },
      {
        name: 'releases the claim that names another NAD of its network once the launcher is on the other network, which allows no persistent addresses',
        given: {
          ...swappedTwice,
          launchers: [launcher([{ nad: 'green' }], { status: [{ nad: 'green' }] })],
          nads: [BLUE, nad('green', { name: 'green-net' })],
        },
        expect: ['release vm1.data'],
      },
    ]);
  });
});
