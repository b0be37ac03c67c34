import { expect } from 'chai';
import { swappedClaimName } from '../api/ipam-claim.js';
import { CLAIM_REFERENCE_KEY, DEFAULT_NETWORK_ANNOTATION, NETWORK_STATUS_ANNOTATION } from '../api/names.js';
import {
  NAMESPACE,
  makeClaim,
  makeLauncherPod,
  makeNad,
  makeVmi,
  networksValue,
} from '../test/objects/kubevirt-objects.js';
import {
  CLUSTER,
  DATA,
  VM1,
  elementWith,
  networksAfter,
  referencesAfter,
  reviewUpdate,
  type ReviewedCluster,
} from '../test/objects/pod-review.js';
import type { PodCheck } from './pod-decision.js';

describe('a launcher pod that is changed', () => {
  const bare = networksValue(VM1);
  const pointed = networksValue(VM1, { data: 'vm1.data' });

  it('is allowed at once if its networks do not change, even if objects are missing', () => {
    for (const same of ['[', pointed]) {
      expect(reviewUpdate({}, same, same)).to.deep.equal({ allowed: true, patch: [], warnings: [], rechecks: [] });
    }
  });

  it('gets back the same bytes that virt-controller removed', () => {
    expect(networksAfter(reviewUpdate(CLUSTER, pointed, bare), bare)).to.equal(pointed);
  });

  it('gets back its reference even if the NAD is gone and another claim would be chosen now', () => {
    const held = networksValue(VM1, { data: 'vm1.old' });
    const claims = [makeClaim('vm1', 'data', { name: 'vm1.old', terminating: true }), makeClaim('vm1', 'data')];
    expect(referencesAfter(reviewUpdate({ ...CLUSTER, nads: [], claims }, held, bare), bare)).to.deep.equal([
      'vm1.old',
    ]);
  });

  it('gets back the claim of the VM that orphaned its VMI before the VMI has inherited the claim', () => {
    const given = {
      ...CLUSTER,
      vmis: [makeVmi('vm1', { data: 'blue' }, { vm: null })],
      claims: [makeClaim('vm1', 'data', { orphaned: true })],
    };
    expect(referencesAfter(reviewUpdate(given, pointed, bare), bare)).to.deep.equal(['vm1.data']);
  });

  it('gets a claim for a hotplugged interface in addition to its others', () => {
    const vmi = makeVmi('vm1', { data: 'blue', more: 'blue' });
    const after = networksValue(vmi);
    expect(referencesAfter(reviewUpdate({ ...CLUSTER, vmis: [vmi] }, pointed, after), after)).to.deep.equal([
      'vm1.data',
      'vm1.more',
    ]);
  });

  it('does not get back the claim of an interface on another NAD', () => {
    const green = makeVmi('vm1', { data: 'green' });
    const after = networksValue(green);
    const given = { ...CLUSTER, vmis: [green], nads: [makeNad('green', { persistent: false })] };
    expect(referencesAfter(reviewUpdate(given, pointed, after), after)).to.deep.equal([undefined]);
  });

  // Multus may be detaching the interface, and the agent refuses a claim of another network
  it('gets the claim of the present network for an interface that is plugged again, although Multus still reports it', () => {
    const present = swappedClaimName('vm1', 'data', 'blue');
    const claims = [makeClaim('vm1', 'data', { network: 'former' }), makeClaim('vm1', 'data', { name: present })];
    const unplugged = makeLauncherPod(VM1, '[]');
    const status = JSON.stringify([{ name: `${NAMESPACE}/blue`, interface: DATA }]);
    unplugged.metadata.annotations[NETWORK_STATUS_ANNOTATION] = status;
    expect(referencesAfter(reviewUpdate({ ...CLUSTER, claims }, unplugged, bare), bare)).to.deep.equal([present]);
  });

  it('keeps an unexplained reference that it had before', () => {
    const held = networksValue(VM1, { data: 'elsewhere' });
    const verdict = reviewUpdate({ ...CLUSTER, claims: [], nads: [] }, held, held.replace('[', '[ '));
    expect(verdict).to.deep.include({ allowed: true, patch: [] });
  });

  it('may keep an unchanged default network, and gets no other claim through it', () => {
    const withDefault = (networks: string, reference: string) => {
      const pod = makeLauncherPod(VM1, networks);
      pod.metadata.annotations[DEFAULT_NETWORK_ANNOTATION] = elementWith({ [CLAIM_REFERENCE_KEY]: reference });
      return pod;
    };
    const before = withDefault(pointed, 'vm2.data');
    expect(referencesAfter(reviewUpdate(CLUSTER, before, withDefault(bare, 'vm2.data')), bare)).to.deep.equal([
      'vm1.data',
    ]);
    expect(reviewUpdate(CLUSTER, before, withDefault(pointed, 'vm3.data'))).to.deep.include({
      allowed: false,
      check: 'default-network',
    });
  });

  it('gets no warning for a default network without a reference', () => {
    const pod = makeLauncherPod(VM1, pointed);
    pod.metadata.annotations[DEFAULT_NETWORK_ANNOTATION] = 'default/macvlan@eth0';
    expect(reviewUpdate(CLUSTER, pointed, pod)).to.deep.include({ allowed: true, patch: [] });
  });

  it('may lose all of its networks', () => {
    expect(reviewUpdate(CLUSTER, pointed, '')).to.deep.include({ allowed: true, patch: [] });
  });

  it('gets no new reference if its VMI is gone, but may keep its own', () => {
    expect(reviewUpdate({}, pointed, bare)).to.deep.include({ allowed: true, patch: [] });
    expect(reviewUpdate({}, pointed, pointed.replace('[', '[ '))).to.deep.include({ allowed: true, patch: [] });
  });

  it('gets no new reference if its VM is gone, but may keep its own', () => {
    const given = { ...CLUSTER, vms: [] };
    expect(reviewUpdate(given, pointed, bare)).to.deep.include({ allowed: true, patch: [] });
    expect(reviewUpdate(given, pointed, pointed.replace('[', '[ '))).to.deep.include({ allowed: true, patch: [] });
  });

  const refusals: { name: string; given: ReviewedCluster; before?: string; after: string; check: PodCheck }[] = [
    {
      name: 'if it refers to a foreign claim',
      given: CLUSTER,
      after: elementWith({ [CLAIM_REFERENCE_KEY]: 'vm2.data' }),
      check: 'reference-expected',
    },
    {
      name: 'if it requests addresses in addition to its claim',
      given: CLUSTER,
      after: elementWith({ ips: ['10.0.0.9'] }),
      check: 'addresses-or-claim',
    },
    { name: 'if its annotation becomes invalid', given: CLUSTER, after: '[{', check: 'annotation' },
    { name: 'if it refers to any claim of a gone VMI', given: {}, before: bare, after: pointed, check: 'vmi-exists' },
    {
      name: 'if it refers to any claim while its VM is gone',
      given: { ...CLUSTER, vms: [] },
      before: bare,
      after: pointed,
      check: 'vm-exists',
    },
    {
      name: 'if it refers to its claim on another interface while its VMI is gone',
      given: {},
      after: elementWith({ interface: 'net7', [CLAIM_REFERENCE_KEY]: 'vm1.data' }),
      check: 'vmi-exists',
    },
  ];
  for (const { name, given, before = pointed, after, check } of refusals) {
    it(`is refused ${name}`, () => {
      expect(reviewUpdate(given, before, after)).to.deep.include({ allowed: false, check });
    });
  }

  it('is reviewed like a new pod if it had no launcher label before', () => {
    const foreign = networksValue(VM1, { data: 'vm2.data' });
    const unlabelled = (networks: string) => {
      const pod = makeLauncherPod(VM1, networks);
      pod.metadata.labels = {};
      return pod;
    };
    expect(reviewUpdate(CLUSTER, unlabelled(foreign), foreign)).to.deep.include({
      allowed: false,
      check: 'reference-expected',
    });
    expect(reviewUpdate({}, unlabelled(pointed), pointed)).to.deep.include({ allowed: false, check: 'vmi-exists' });
    expect(referencesAfter(reviewUpdate(CLUSTER, unlabelled(bare), bare), bare)).to.deep.equal(['vm1.data']);
    expect(reviewUpdate(CLUSTER, unlabelled(pointed), pointed)).to.deep.include({ allowed: true, patch: [] });
  });

  it('is reviewed like a new pod if its previous annotation was invalid', () => {
    expect(referencesAfter(reviewUpdate(CLUSTER, '[{', bare), bare)).to.deep.equal(['vm1.data']);
  });
});
