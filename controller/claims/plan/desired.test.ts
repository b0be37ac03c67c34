import { expect } from 'chai';
import { podInterfaceName } from '../../../api/pod.js';
import {
  type VmiOptions,
  claim,
  claimOfIpamExtensions,
  nad,
  vm,
  vmi,
  vmiReference,
} from '../../../test/objects/workload-objects.js';
import {
  BLUE,
  BROKEN_BLUE,
  GREEN,
  type WorkloadScenario,
  PLAIN_BLUE,
  observationOf,
} from '../testing/workload-observation.js';
import { findDesiredClaims } from './desired.js';
import { ownedClaims } from './ownership.js';

/** One line for each owner: its UID and its interfaces. */
function demands(given: WorkloadScenario): string[] {
  const observed = observationOf(given);
  return findDesiredClaims(observed, ownedClaims(observed)).map(({ owner, claims }) =>
    [owner.uid, ...claims.map(({ vmNetwork, network, nad: key }) => `${vmNetwork}=${network}(${key})`)].join(' '),
  );
}

const DATA = 'data=blue-net(vms/blue)';
const standalone: VmiOptions = { vm: null };

describe('the desired claims of a workload', () => {
  const table: { name: string; given: WorkloadScenario; expect: string[] }[] = [
    { name: 'are none if there is neither a VM nor a VMI', given: {}, expect: [] },
    { name: 'include those of a stopped VM', given: { vm: vm({ data: 'blue' }) }, expect: [`vm-uid ${DATA}`] },
    {
      name: 'include one for each of several interfaces on one NAD',
      given: { vm: vm({ data: 'blue', extra: 'blue' }) },
      expect: [`vm-uid ${DATA} extra=blue-net(vms/blue)`],
    },
    {
      name: 'include those on a NAD of another namespace',
      given: {
        vm: vm({ data: 'nets/blue' }),
        nads: [nad('blue', { name: 'far-net', allowPersistentIPs: true }, 'nets')],
      },
      expect: ['vm-uid data=far-net(nets/blue)'],
    },
    {
      name: 'respect the flag inside a plugin of a plugin list',
      given: {
        vm: vm({ data: 'blue' }),
        nads: [nad('blue', { name: 'blue-net', plugins: [{ type: 'bridge', allowPersistentIPs: true }] })],
      },
      expect: [`vm-uid ${DATA}`],
    },
    { name: 'need the flag of the NAD', given: { vm: vm({ data: 'blue' }), nads: [PLAIN_BLUE] }, expect: ['vm-uid'] },
    { name: 'are none for a deleted VM', given: { vm: vm({ data: 'blue' }, { deleting: true }) }, expect: [] },
    {
      name: 'are none for the VMI of a VM that is being deleted',
      given: { vm: vm({ data: 'blue' }, { deleting: true }), vmi: vmi({ data: 'blue' }) },
      expect: [],
    },
    {
      name: 'include that of an interface hotplugged into the VM before the VMI has it',
      given: { vm: vm({ data: 'blue', extra: 'green' }), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA} extra=green-net(vms/green)`],
    },
    {
      name: 'include that of an interface that was removed from the VM while the VMI has it',
      given: { vm: vm({}), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'include that of an interface that is absent in the VM only',
      given: { vm: vm({ data: '!blue' }), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'include that of an interface that is plugged in again while the VMI still unplugs it',
      given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: '!blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'exclude that of an interface that is absent in the VM and the VMI',
      given: { vm: vm({ data: '!blue' }), vmi: vmi({ data: '!blue' }) },
      expect: ['vm-uid'],
    },
    {
      name: 'of a VMI that is being deleted are only those of its VM',
      given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue', extra: 'green' }, { deleting: true }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'cover both networks after a NAD swap, that of the VMI first',
      given: { vm: vm({ data: 'green' }), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA} data=green-net(vms/green)`],
    },
    {
      name: 'are one if two NADs name one network, for the NAD that the VMI uses',
      given: {
        vm: vm({ data: 'blue2' }),
        vmi: vmi({ data: 'blue' }),
        nads: [BLUE, nad('blue2', { name: 'blue-net', allowPersistentIPs: true })],
      },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'belong to the VM that a VMI names before that VM is observed',
      given: { vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'include those of a standalone VMI',
      given: { vmi: vmi({ data: 'blue' }, standalone) },
      expect: [`vmi-uid ${DATA}`],
    },
    {
      name: 'are none for a standalone VMI that is being deleted',
      given: { vmi: vmi({ data: 'blue' }, { vm: null, deleting: true }) },
      expect: [],
    },
    {
      name: 'list those of a VMI that does not belong to the VM first',
      given: { vm: vm({ data: 'green' }), vmi: vmi({ data: 'blue' }, standalone) },
      expect: [`vmi-uid ${DATA}`, 'vm-uid data=green-net(vms/green)'],
    },
    {
      name: 'list those of the VMI of an earlier VM before those of the new VM of that name',
      given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: 'old-uid' }) },
      expect: [`old-uid ${DATA}`, `vm-uid ${DATA}`],
    },
    {
      name: 'belong to the VMI itself if it names a VM of another name',
      given: { vmi: vmi({ data: 'blue' }, { controller: { ...vmiReference('x', 'vm2'), kind: 'VirtualMachine' } }) },
      expect: [`vmi-uid ${DATA}`],
    },
    {
      name: 'belong to the VMI itself if a replica set controls it',
      given: {
        vmi: vmi({ data: 'blue' }, { controller: { ...vmiReference('x'), kind: 'VirtualMachineInstanceReplicaSet' } }),
      },
      expect: [`vmi-uid ${DATA}`],
    },
    {
      name: 'include an existing claim whose NAD lost the flag',
      given: { vm: vm({ data: 'blue' }), claims: [claim()], nads: [PLAIN_BLUE] },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'include an existing claim whose NAD lost flag and name because its config was emptied',
      given: { vm: vm({ data: 'blue' }), claims: [claim()], nads: [nad('blue', '')] },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'include no successor of a deleted claim whose NAD lost the flag',
      given: { vm: vm({ data: 'blue' }), claims: [claim({ deleting: true })], nads: [PLAIN_BLUE] },
      expect: ['vm-uid'],
    },
    {
      name: 'exclude a claim of another owner whose NAD lost the flag',
      given: { vm: vm({ data: 'blue' }, { uid: 'new-uid' }), claims: [claim()], nads: [PLAIN_BLUE] },
      expect: ['new-uid'],
    },
    {
      name: 'include an existing claim whose NAD is missing, and those of the other interfaces',
      given: { vm: vm({ data: 'blue', extra: 'green' }), claims: [claim()], nads: [GREEN] },
      expect: [`vm-uid ${DATA} extra=green-net(vms/green)`],
    },
    {
      name: 'include an existing claim without a NAD annotation while the NAD is invalid',
      given: { vm: vm({ data: 'blue' }), claims: [claimOfIpamExtensions()], nads: [BROKEN_BLUE] },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'exclude an existing claim of another NAD while the NAD is invalid',
      given: {
        vm: vm({ data: 'blue' }),
        claims: [claim({ nad: 'vms/green', network: 'green-net' })],
        nads: [BROKEN_BLUE],
      },
      expect: ['vm-uid'],
    },
    {
      name: 'are only the existing ones while the feature gate is closed',
      given: { vm: vm({ data: 'blue', extra: 'green' }), claims: [claim()], gateClosed: true },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'are only the existing ones in a namespace that opted out',
      given: { vm: vm({ data: 'blue', extra: 'green' }), claims: [claim()], optedOut: true },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'include an existing claim in a namespace that opted out although its NAD names another network now',
      given: {
        vm: vm({ data: 'blue' }),
        claims: [claim()],
        nads: [nad('blue', { name: 'new-net', allowPersistentIPs: true })],
        optedOut: true,
      },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'exclude a claim of an earlier NAD in a namespace that opted out',
      given: { vm: vm({ data: 'green' }), claims: [claim()], optedOut: true },
      expect: ['vm-uid'],
    },
  ];
  for (const row of table) {
    it(row.name, () => {
      expect(demands(row.given)).to.deep.equal(row.expect);
    });
  }

  it('have the interface name that the VMI reports, or else its hash', () => {
    const given = {
      vm: vm({ data: 'blue', extra: 'green' }),
      vmi: vmi(
        { data: 'blue', extra: 'green' },
        { interfaces: [{ name: 'data', podInterfaceName: 'net1' }, { name: 'extra' }] },
      ),
    };
    const observed = observationOf(given);
    const [demand] = findDesiredClaims(observed, []);
    expect(demand?.claims.map(({ podInterface }) => podInterface)).to.deep.equal(['net1', podInterfaceName('extra')]);
  });

  it('come with problems that name the NAD, the field and what to do', () => {
    const nads = [nad('flag', { name: 'x', allowPersistentIPs: 'yes' }), nad('text', '{')];
    const observed = observationOf({ vm: vm({ one: 'flag', two: 'text', three: 'far/away', four: '!missing' }), nads });
    const problems = findDesiredClaims(observed, [])[0]?.problems ?? [];
    expect(problems.map(({ reason }) => reason)).to.deep.equal([
      'NetworkAttachmentInvalid',
      'NetworkAttachmentInvalid',
      'NetworkAttachmentNotFound',
    ]);
    expect(problems[0]?.message).to.match(
      /"one": NetworkAttachmentDefinition vms\/flag: spec\.config\.allowPersistentIPs is "yes": set/,
    );
    expect(problems[1]?.message).to.match(
      /"two": NetworkAttachmentDefinition vms\/text: spec\.config is not JSON .* correct it$/,
    );
    expect(problems[2]?.message).to.equal(
      'Network "three": NetworkAttachmentDefinition far/away does not exist: create it, or correct networkName in the VM\'s spec',
    );
  });

  it('come without problems of NADs while the feature gate is closed', () => {
    const observed = observationOf({ vm: vm({ one: 'missing' }), gateClosed: true });
    expect(findDesiredClaims(observed, [])[0]?.problems).to.deep.equal([]);
  });
});
