import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod-interface.js';
import {
  type VmiOptions,
  claim,
  claimOfIpamExtensions,
  nad,
  vm,
  vmi,
  vmiReference,
} from '../../test/workload-objects.js';
import {
  BLUE,
  BROKEN_BLUE,
  GREEN,
  type WorkloadScenario,
  PLAIN_BLUE,
  observationOf,
} from './testing/workload-observation.js';
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

describe('desired', () => {
  const table: { name: string; given: WorkloadScenario; expect: string[] }[] = [
    { name: 'wants nothing where there is nothing', given: {}, expect: [] },
    { name: 'wants the networks of a stopped VM', given: { vm: vm({ data: 'blue' }) }, expect: [`vm-uid ${DATA}`] },
    {
      name: 'wants each interface of several on one NAD',
      given: { vm: vm({ data: 'blue', extra: 'blue' }) },
      expect: [`vm-uid ${DATA} extra=blue-net(vms/blue)`],
    },
    {
      name: 'reads a NAD of another namespace',
      given: {
        vm: vm({ data: 'nets/blue' }),
        nads: [nad('blue', { name: 'far-net', allowPersistentIPs: true }, 'nets')],
      },
      expect: ['vm-uid data=far-net(nets/blue)'],
    },
    {
      name: 'reads the flag inside a plugin of a list',
      given: {
        vm: vm({ data: 'blue' }),
        nads: [nad('blue', { name: 'blue-net', plugins: [{ type: 'bridge', allowPersistentIPs: true }] })],
      },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants nothing on a NAD without the flag',
      given: { vm: vm({ data: 'blue' }), nads: [PLAIN_BLUE] },
      expect: ['vm-uid'],
    },
    {
      name: 'wants nothing for a VM that is being deleted',
      given: { vm: vm({ data: 'blue' }, { deleting: true }) },
      expect: [],
    },
    {
      name: 'wants nothing for the VMI of a VM that is being deleted',
      given: { vm: vm({ data: 'blue' }, { deleting: true }), vmi: vmi({ data: 'blue' }) },
      expect: [],
    },
    {
      name: 'wants an interface that is plugged into the VM, before its VMI has it',
      given: { vm: vm({ data: 'blue', extra: 'green' }), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA} extra=green-net(vms/green)`],
    },
    {
      name: 'wants an interface that is gone from the VM while its VMI has it',
      given: { vm: vm({}), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants an interface that is absent in the VM only',
      given: { vm: vm({ data: '!blue' }), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants an interface that is plugged again while the VMI still unplugs it',
      given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: '!blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants no interface that is absent on both sides',
      given: { vm: vm({ data: '!blue' }), vmi: vmi({ data: '!blue' }) },
      expect: ['vm-uid'],
    },
    {
      name: 'wants nothing of a VMI that is being deleted but what its VM wants',
      given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue', extra: 'green' }, { deleting: true }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants both networks of a swapped NAD, that of the VMI first',
      given: { vm: vm({ data: 'green' }), vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA} data=green-net(vms/green)`],
    },
    {
      name: 'wants one claim where two NADs name one network, for the NAD that runs',
      given: {
        vm: vm({ data: 'blue2' }),
        vmi: vmi({ data: 'blue' }),
        nads: [BLUE, nad('blue2', { name: 'blue-net', allowPersistentIPs: true })],
      },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'takes the owner from the reference of a VMI whose VM is not seen yet',
      given: { vmi: vmi({ data: 'blue' }) },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants for a standalone VMI',
      given: { vmi: vmi({ data: 'blue' }, standalone) },
      expect: [`vmi-uid ${DATA}`],
    },
    {
      name: 'wants nothing for a standalone VMI that is being deleted',
      given: { vmi: vmi({ data: 'blue' }, { vm: null, deleting: true }) },
      expect: [],
    },
    {
      name: 'serves a VMI that is not the VM’s before the VM',
      given: { vm: vm({ data: 'green' }), vmi: vmi({ data: 'blue' }, standalone) },
      expect: [`vmi-uid ${DATA}`, 'vm-uid data=green-net(vms/green)'],
    },
    {
      name: 'serves the VMI of an earlier VM of that name before the new VM',
      given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }, { vm: 'old-uid' }) },
      expect: [`old-uid ${DATA}`, `vm-uid ${DATA}`],
    },
    {
      name: 'takes a VMI that names a VM of another name for a standalone one',
      given: { vmi: vmi({ data: 'blue' }, { controller: { ...vmiReference('x', 'vm2'), kind: 'VirtualMachine' } }) },
      expect: [`vmi-uid ${DATA}`],
    },
    {
      name: 'takes a VMI of a replica set for a standalone one',
      given: {
        vmi: vmi({ data: 'blue' }, { controller: { ...vmiReference('x'), kind: 'VirtualMachineInstanceReplicaSet' } }),
      },
      expect: [`vmi-uid ${DATA}`],
    },
    {
      name: 'keeps wanting a claim whose NAD lost its flag',
      given: { vm: vm({ data: 'blue' }), claims: [claim()], nads: [PLAIN_BLUE] },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'keeps wanting a claim whose NAD lost flag and name, for its config was emptied',
      given: { vm: vm({ data: 'blue' }), claims: [claim()], nads: [nad('blue', '')] },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants no successor where the NAD lost its flag',
      given: { vm: vm({ data: 'blue' }), claims: [claim({ deleting: true })], nads: [PLAIN_BLUE] },
      expect: ['vm-uid'],
    },
    {
      name: 'keeps wanting no claim of another owner whose NAD lost its flag',
      given: { vm: vm({ data: 'blue' }, { uid: 'new-uid' }), claims: [claim()], nads: [PLAIN_BLUE] },
      expect: ['new-uid'],
    },
    {
      name: 'keeps wanting a claim whose NAD is missing, and goes on with the others',
      given: { vm: vm({ data: 'blue', extra: 'green' }), claims: [claim()], nads: [GREEN] },
      expect: [`vm-uid ${DATA} extra=green-net(vms/green)`],
    },
    {
      name: 'keeps wanting a claim without a note of its NAD while the NAD is broken',
      given: { vm: vm({ data: 'blue' }), claims: [claimOfIpamExtensions()], nads: [BROKEN_BLUE] },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'does not keep wanting a claim of another NAD while the NAD is broken',
      given: {
        vm: vm({ data: 'blue' }),
        claims: [claim({ nad: 'vms/green', network: 'green-net' })],
        nads: [BROKEN_BLUE],
      },
      expect: ['vm-uid'],
    },
    {
      name: 'wants nothing new while the gate is closed, but what exists',
      given: { vm: vm({ data: 'blue', extra: 'green' }), claims: [claim()], gateClosed: true },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants nothing new in a namespace that opted out, but what exists',
      given: { vm: vm({ data: 'blue', extra: 'green' }), claims: [claim()], optedOut: true },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'keeps wanting a claim in a namespace that opted out, though its NAD names another network now',
      given: {
        vm: vm({ data: 'blue' }),
        claims: [claim()],
        nads: [nad('blue', { name: 'new-net', allowPersistentIPs: true })],
        optedOut: true,
      },
      expect: [`vm-uid ${DATA}`],
    },
    {
      name: 'wants no claim of an earlier NAD in a namespace that opted out',
      given: { vm: vm({ data: 'green' }), claims: [claim()], optedOut: true },
      expect: ['vm-uid'],
    },
  ];
  for (const row of table) {
    it(row.name, () => {
      expect(demands(row.given)).to.deep.equal(row.expect);
    });
  }

  it('names the interface as the VMI reports it, else by its hash', () => {
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

  it('says what is wrong with a NAD, where, and what to do', () => {
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
      'network "three": NetworkAttachmentDefinition far/away does not exist: create it, or correct networkName in the VM\'s spec',
    );
  });

  it('has nothing to say about NADs while the gate is closed', () => {
    const observed = observationOf({ vm: vm({ one: 'missing' }), gateClosed: true });
    expect(findDesiredClaims(observed, [])[0]?.problems).to.deep.equal([]);
  });
});
