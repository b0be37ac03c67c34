import { expect } from 'chai';
import { podInterfaceName } from '../../../api/pod.js';
import { claimName } from '../../../api/ipam-claim.js';
import {
  claim,
  claimOfIpamExtensions,
  launcher,
  nad,
  vm,
  vmReference,
  vmi,
  vmiReference,
} from '../../../test/objects/workload-objects.js';
import { BLUE, BROKEN_BLUE, GREEN, PLAIN_BLUE, observationOf } from '../testing/workload-observation.js';
import { itPlansClaims } from '../testing/claim-plan-cases.js';
import { plan } from './plan.js';

const running = launcher([{ nad: 'blue', claim: 'vm1.data' }], { status: [{ nad: 'blue' }] });
const ended = launcher([{ nad: 'blue', claim: 'vm1.data' }], { phase: 'Succeeded', status: [{ nad: 'blue' }] });

describe('the plan', () => {
  describe('for a deleted claim that may not be created again', () => {
    const stopped = { vm: vm({ data: 'blue' }), claims: [claim({ deleting: true })] };
    const refused = 'it was deleted, and its network, its namespace or the feature gate allows no new claim';
    const rows = [
      { name: 'the network no longer allows claims', given: { ...stopped, nads: [PLAIN_BLUE] }, expect: refused },
      { name: 'the gate is closed', given: { ...stopped, gateClosed: true }, expect: refused },
      { name: 'the namespace opted out', given: { ...stopped, optedOut: true }, expect: refused },
      {
        name: 'the interface is absent',
        given: { ...stopped, vm: vm({ data: '!blue' }) },
        expect: 'its interface is unplugged',
      },
    ];
    for (const { name, given, expect: reason } of rows) {
      it(`gives the reason if ${name}`, () => {
        const actions = plan(observationOf(given)).map((action) => [action.kind, action.reason]);
        expect(actions).to.deep.equal([['release', reason]]);
      });
    }
  });

  describe('for a living owner whose interface needs a claim', () => {
    itPlansClaims([
      { name: 'creates the claim', given: { vm: vm({ data: 'blue' }) }, expect: ['create vm1.data for vm-uid'] },
      {
        name: 'creates one claim for each of several interfaces on one NAD',
        given: { vm: vm({ data: 'blue', extra: 'blue' }) },
        expect: ['create vm1.data for vm-uid', 'create vm1.extra for vm-uid'],
      },
      {
        name: 'creates no more claims than one VM may have, and names the interface without one',
        given: { vm: vm({ one: 'blue', two: 'blue', three: 'blue', four: 'blue' }), maxClaims: 2 },
        expect: ['create vm1.one for vm-uid', 'create vm1.two for vm-uid', 'refuse IPAMClaimLimitReached on vm'],
      },
      {
        name: 'keeps the existing claims beyond the limit, and creates none',
        given: {
          vm: vm({ data: 'blue', extra: 'blue', more: 'blue' }),
          claims: [claim(), claim({ name: 'vm1.extra', vmNetwork: 'extra' })],
          maxClaims: 1,
        },
        expect: ['keep vm1.data', 'keep vm1.extra', 'refuse IPAMClaimLimitReached on vm'],
      },
      {
        name: 'creates the claim of a standalone VMI',
        given: { vmi: vmi({ data: 'blue' }, { vm: null }) },
        expect: ['create vm1.data for vmi-uid'],
      },
      {
        name: 'creates the claim for the VM that a VMI names before that VM is observed',
        given: { vmi: vmi({ data: 'blue' }) },
        expect: ['create vm1.data for vm-uid'],
      },
      { name: 'keeps its claim', given: { vm: vm({ data: 'blue' }), claims: [claim()] }, expect: ['keep vm1.data'] },
      {
        name: 'keeps the claim with two launchers during a migration',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: 'blue' }),
          launchers: [running, launcher([{ nad: 'blue', claim: 'vm1.data' }], { name: 'target' })],
          claims: [claim()],
        },
        expect: ['keep vm1.data'],
      },
      {
        name: 'keeps the claim if the NAD lost its flag',
        given: { vm: vm({ data: 'blue' }), claims: [claim()], nads: [PLAIN_BLUE] },
        expect: ['keep vm1.data'],
      },
      {
        name: 'keeps the claim if the NAD is gone, and reports the NAD',
        given: { vm: vm({ data: 'blue' }), claims: [claim()], nads: [] },
        expect: ['keep vm1.data', 'refuse NetworkAttachmentNotFound on vm'],
      },
      {
        name: 'keeps the claim while the feature gate is closed, and creates no other',
        given: { vm: vm({ data: 'blue', extra: 'blue' }), claims: [claim()], gateClosed: true },
        expect: ['keep vm1.data'],
      },
      {
        name: 'keeps the claim of an interface that moves to another NAD until NADs are listed',
        given: { vm: vm({ data: 'green' }), claims: [claim()], gateClosed: true, areNetworksKnown: false },
        expect: ['keep vm1.data'],
      },
      {
        name: 'releases the claim of an interface that is unplugged before NADs are listed',
        given: { vm: vm({ data: '!blue' }), claims: [claim()], gateClosed: true, areNetworksKnown: false },
        expect: ['release vm1.data'],
      },
      {
        name: 'keeps the claim while the namespace has opted out',
        given: { vm: vm({ data: 'blue', extra: 'blue' }), claims: [claim()], optedOut: true },
        expect: ['keep vm1.data'],
      },
      {
        name: 'creates the claims of other interfaces if one NAD is invalid',
        given: { vm: vm({ data: 'blue', extra: 'green' }), nads: [BROKEN_BLUE, GREEN] },
        expect: ['create vm1.extra for vm-uid', 'refuse NetworkAttachmentInvalid on vm'],
      },
      {
        name: 'adopts a claim of kubevirt/ipam-extensions',
        given: { vm: vm({ data: 'blue' }), claims: [claimOfIpamExtensions()] },
        expect: ['update vm1.data for vm-uid: annotations interface'],
      },
      {
        name: 'adopts a claim of kubevirt/ipam-extensions under its existing name',
        given: { vm: vm({ Data_1: 'blue' }), claims: [claimOfIpamExtensions({ name: 'vm1.data.1' })] },
        expect: ['update vm1.data.1 for vm-uid: annotations interface'],
      },
      {
        name: 'creates a second claim if kubevirt/ipam-extensions gave two interfaces one name',
        given: {
          vm: vm({ Data_1: 'blue', 'data.1': 'blue' }),
          claims: [claimOfIpamExtensions({ name: 'vm1.data.1' })],
        },
        expect: [
          'update vm1.data.1 for vm-uid: annotations interface',
          `create ${claimName('vm1', 'data.1')} for vm-uid`,
        ],
      },
      {
        name: 'restores the finalizer, the owner and the label of a claim',
        given: {
          vm: vm({ data: 'blue' }),
          claims: [claim({ finalizers: [], owner: null, recordedOwner: { name: 'vm1', uid: 'vm-uid' }, label: null })],
        },
        expect: ['update vm1.data for vm-uid: finalizers labels ownerReferences'],
      },
      {
        name: 'corrects the interface of a claim if the VMI reports another one',
        given: {
          vm: vm({ data: 'blue' }),
          vmi: vmi({ data: 'blue' }, { interfaces: [{ name: 'data', podInterfaceName: 'net1' }] }),
          claims: [claim()],
        },
        expect: ['update vm1.data for vm-uid: interface'],
      },
      {
        name: 'corrects the NAD of a claim if another NAD names the same network',
        given: { vm: vm({ data: 'blue2' }), claims: [claim()], nads: [BLUE, nad('blue2', { name: 'blue-net' })] },
        expect: ['update vm1.data for vm-uid: annotations'],
      },
    ]);
  });

  describe('for a claim that a user deleted while its VM exists', () => {
    const deleted = claim({ deleting: true, ips: ['10.0.0.5/24'] });
    itPlansClaims([
      {
        name: 'keeps the claim while the VMI exists, and says so on the claim and the VM',
        given: { vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }), launchers: [ended], claims: [deleted] },
        expect: ['wait for vm1.data, IPAMClaimInUse on the claim and its owner'],
      },
      {
        name: 'keeps the claim while a launcher exists',
        given: { vm: vm({ data: 'blue' }), launchers: [running], claims: [deleted] },
        expect: ['wait for vm1.data, IPAMClaimInUse on the claim and its owner'],
      },
      {
        name: 'replaces the claim once nothing of the VM runs',
        given: { vm: vm({ data: 'blue' }), launchers: [ended], claims: [deleted] },
        expect: ['release vm1.data, then create it'],
      },
      {
        name: 'replaces the claim although its NAD is invalid',
        given: { vm: vm({ data: 'blue' }), claims: [deleted], nads: [BROKEN_BLUE] },
        expect: ['release vm1.data, then create it', 'refuse NetworkAttachmentInvalid on vm'],
      },
      {
        name: 'releases the claim without a successor if the NAD lost its flag',
        given: { vm: vm({ data: 'blue' }), claims: [deleted], nads: [PLAIN_BLUE] },
        expect: ['release vm1.data'],
      },
      {
        name: 'waits for the finalizers of others',
        given: { vm: vm({ data: 'blue' }), claims: [claim({ deleting: true, finalizers: ['other'] })] },
        expect: ['wait for vm1.data'],
      },
    ]);

    it('requests the same addresses for the successor', () => {
      const [action] = plan(observationOf({ vm: vm({ data: 'blue' }), claims: [deleted] }));
      expect(action).to.deep.nested.include({
        'successor.metadata.annotations.ipam\\.holdfast\\.dev/requested-addresses': '["10.0.0.5/24"]',
        'successor.metadata.annotations.ipam\\.holdfast\\.dev/request-origin': 'former',
      });
      expect(action).to.not.have.nested.property('successor.status');
    });

    it('repeats the request of a deleted claim that got no addresses', () => {
      const without = claim({ deleting: true });
      without.metadata.annotations = {
        ...without.metadata.annotations,
        'ipam.holdfast.dev/requested-addresses': '["10.0.0.6"]',
      };
      const [action] = plan(observationOf({ vm: vm({ data: 'blue' }), claims: [without] }));
      expect(action).to.have.nested.property(
        'successor.metadata.annotations.ipam\\.holdfast\\.dev/requested-addresses',
        '["10.0.0.6"]',
      );
    });
  });

  it('sets all fields of a new claim', () => {
    const given = {
      vm: vm({ Data: 'nets/blue' }),
      nads: [nad('blue', { name: 'blue-net', allowPersistentIPs: true }, 'nets')],
    };
    const [action] = plan(observationOf(given));
    expect(action?.kind === 'create' && action.claim).to.deep.equal({
      apiVersion: 'k8s.cni.cncf.io/v1alpha1',
      kind: 'IPAMClaim',
      metadata: {
        namespace: 'vms',
        name: claimName('vm1', 'Data'),
        labels: { 'kubevirt.io/vm': 'vm1' },
        annotations: {
          'ipam.holdfast.dev/owner-name': 'vm1',
          'ipam.holdfast.dev/owner-uid': 'vm-uid',
          'ipam.holdfast.dev/vm-network': 'Data',
          'velero.io/restore-status': 'true',
          'ipam.holdfast.dev/network-attachment-definition': 'nets/blue',
        },
        finalizers: ['kubevirt.io/persistent-ipam'],
        ownerReferences: [vmReference('vm-uid')],
      },
      spec: { network: 'blue-net', interface: podInterfaceName('Data') },
    });
  });

  it('does not make the deletion of a standalone VMI wait for its claim', () => {
    const [action] = plan(observationOf({ vmi: vmi({ data: 'blue' }, { vm: null }) }));
    expect(action?.kind === 'create' && action.claim.metadata.ownerReferences).to.deep.equal([vmiReference('vmi-uid')]);
  });

  it('keeps the other owner references of a claim', () => {
    const other = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'x-uid' };
    const shared = claim({ owner: vmiReference('vmi-uid') });
    shared.metadata.ownerReferences?.push(other);
    const [action] = plan(observationOf({ vm: vm({ data: 'blue' }), vmi: vmi({ data: 'blue' }), claims: [shared] }));
    expect(action?.kind === 'update' && action.set.ownerReferences).to.deep.equal([other, vmReference('vm-uid')]);
  });

  it('sets a valid label for a VM whose name has more than 63 characters', () => {
    const name = 'v'.repeat(70);
    const [action] = plan(observationOf({ vm: vm({ data: 'blue' }, { name }), name }));
    expect(action?.kind === 'create' && action.claim.metadata.labels?.['kubevirt.io/vm']).to.have.lengthOf(63);
  });

  it('gives a reason for every action', () => {
    const given = {
      vm: vm({ data: 'blue', extra: 'green', gone: 'missing' }),
      claims: [claim(), claim({ name: 'vm1.old', vmNetwork: 'old' })],
    };
    for (const action of plan(observationOf(given))) expect(action.reason).to.not.equal('');
  });
});
