import { expect } from 'chai';
import { claimName, swappedClaimName } from '../api/ipam-claim.js';
import {
  makeClaim,
  makeLauncherPod,
  makeNad,
  makeVm,
  makeVmi,
  networksValue,
} from '../test/objects/kubevirt-objects.js';
import { CLUSTER, type ReviewedCluster, VM1, referencesAfter, reviewCreate } from '../test/objects/pod-review.js';
import { type WorkloadClaimOptions, claimOfIpamExtensions, vmReference } from '../test/objects/workload-objects.js';

describe('a launcher pod that is created', () => {
  const networks = networksValue(VM1);

  const choices: { name: string; given: ReviewedCluster; expect: (string | undefined)[] }[] = [
    { name: 'refers to the claim of its VM', given: CLUSTER, expect: ['vm1.data'] },
    { name: 'refers to a claim before it exists', given: { ...CLUSTER, claims: [] }, expect: ['vm1.data'] },
    {
      name: 'refers to a claim that nobody owns and the controller is about to adopt',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { ownerUid: null })] },
      expect: ['vm1.data'],
    },
    {
      name: 'refers to a claim whose owner is remembered after the garbage collector took the reference away',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { orphaned: true })] },
      expect: ['vm1.data'],
    },
    {
      name: 'refers to a claim of its VM that a user has deleted, while there is no other',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { terminating: true })] },
      expect: ['vm1.data'],
    },
    {
      name: 'refers to a claim of its VM after the flag is gone from the NAD',
      given: { ...CLUSTER, nads: [makeNad('blue', { persistent: false })] },
      expect: ['vm1.data'],
    },
    {
      name: 'refers to a claim of its VM after the namespace has opted out',
      given: { ...CLUSTER, enabled: false },
      expect: ['vm1.data'],
    },
    {
      name: 'refers to the claim that was made for its NAD while the NAD is missing',
      given: { ...CLUSTER, nads: [] },
      expect: ['vm1.data'],
    },
    {
      name: 'refers to the claim that was made for its NAD while the NAD is broken',
      given: { ...CLUSTER, nads: [makeNad('blue', { config: '{' })] },
      expect: ['vm1.data'],
    },
    {
      name: 'refers to nothing while its NAD is missing and the only claim was made for another NAD',
      given: { ...CLUSTER, nads: [], claims: [makeClaim('vm1', 'data', { nad: 'vms/green', network: 'green' })] },
      expect: [undefined],
    },
    {
      name: 'refers to nothing on a network without the flag',
      given: { ...CLUSTER, claims: [], nads: [makeNad('blue', { persistent: false })] },
      expect: [undefined],
    },
    {
      name: 'refers to nothing new in a namespace that has opted out',
      given: { ...CLUSTER, claims: [], enabled: false },
      expect: [undefined],
    },
    {
      name: 'refers to nothing new for an interface that is being unplugged',
      given: { ...CLUSTER, claims: [], vmis: [makeVmi('vm1', { data: '!blue' })] },
      expect: [undefined],
    },
    {
      name: 'refers to a second claim while the first is for the network that its interface had before',
      given: { ...CLUSTER, claims: [makeClaim('vm1', 'data', { network: 'green', nad: 'vms/green' })] },
      expect: [swappedClaimName('vm1', 'data', 'blue')],
    },
    {
      name: 'refers to the second claim once it exists',
      given: {
        ...CLUSTER,
        claims: [
          makeClaim('vm1', 'data', { network: 'green', nad: 'vms/green' }),
          makeClaim('vm1', 'data', { name: swappedClaimName('vm1', 'data', 'blue') }),
        ],
      },
      expect: [swappedClaimName('vm1', 'data', 'blue')],
    },
    {
      name: 'refers to the second claim if that is the one that the controller is about to adopt',
      given: {
        ...CLUSTER,
        claims: [makeClaim('vm1', 'data', { name: swappedClaimName('vm1', 'data', 'blue'), ownerUid: null })],
      },
      expect: [swappedClaimName('vm1', 'data', 'blue')],
    },
    {
      name: 'refers to the claim that lives, of two for one network',
      given: {
        ...CLUSTER,
        claims: [
          makeClaim('vm1', 'data', { terminating: true }),
          makeClaim('vm1', 'data', { name: 'vm1.data-of-old' }),
        ],
      },
      expect: ['vm1.data-of-old'],
    },
    {
      name: 'refers to the claim of the VMI itself where there is no VM',
      given: {
        ...CLUSTER,
        vmis: [makeVmi('vm1', { data: 'blue' }, { vm: null })],
        claims: [makeClaim('vm1', 'data', { ownerUid: 'vm1-vmi-uid' })],
      },
      expect: ['vm1.data'],
    },
  ];
  for (const { name, given, expect: expected } of choices) {
    it(name, () => {
      expect(referencesAfter(reviewCreate(given, networks), networks)).to.deep.equal(expected);
    });
  }

  it('refers to its own claim, not to one of another name with the same UID', () => {
    const vm = { metadata: { ...makeVm('evil').metadata, uid: 'vm1-vm-uid' } };
    const vmi = makeVmi('evil', { data: 'blue' }, { vm: 'vm1-vm-uid' });
    const value = networksValue(vmi);
    const verdict = reviewCreate({ ...CLUSTER, vms: [vm], vmis: [vmi] }, value, makeLauncherPod(vmi));
    expect(referencesAfter(verdict, value)).to.deep.equal(['evil.data']);
  });
});

const FORMER = 'vm1.net.1';
const former = (options: WorkloadClaimOptions = {}) =>
  claimOfIpamExtensions({ name: FORMER, network: 'blue', owner: vmReference('vm1-vm-uid'), ...options });

describe('a launcher pod with a network whose claim kubevirt/ipam-extensions named differently', () => {
  const ONE = makeVmi('vm1', { net_1: 'blue' });
  const TWO = makeVmi('vm1', { Net_1: 'blue', net_1: 'blue' });
  const cluster = (vmi: typeof ONE, claims: ReviewedCluster['claims']): ReviewedCluster => ({
    vmis: [vmi],
    vms: [makeVm('vm1')],
    nads: [makeNad('blue'), makeNad('green')],
    ...(claims && { claims }),
  });

  const rows: { name: string; vmi?: typeof ONE; claims: ReviewedCluster['claims']; expect: string[] }[] = [
    { name: 'refers to the claim that it made for the interface', claims: [former()], expect: [FORMER] },
    { name: 'refers to our name if there is none', claims: [], expect: [claimName('vm1', 'net_1')] },
    {
      name: 'refers to our name if that claim is of another owner',
      claims: [former({ owner: vmReference('other-uid', 'vm1') })],
      expect: [claimName('vm1', 'net_1')],
    },
    {
      name: 'refers to our name if that claim is for another CNI network',
      claims: [former({ network: 'green' })],
      expect: [claimName('vm1', 'net_1')],
    },
    { name: 'refers to a claim only once', vmi: TWO, claims: [former()], expect: [FORMER, claimName('vm1', 'net_1')] },
    {
      name: 'refers to that claim on the interface for which it was adopted',
      vmi: TWO,
      claims: [former({ vmNetwork: 'net_1' })],
      expect: [claimName('vm1', 'Net_1'), FORMER],
    },
  ];
  for (const { name, vmi = ONE, claims, expect: expected } of rows) {
    it(name, () => {
      const networks = networksValue(vmi);
      const verdict = reviewCreate(cluster(vmi, claims), networks, makeLauncherPod(vmi, networks));
      expect(referencesAfter(verdict, networks)).to.deep.equal(expected);
    });
  }
});
