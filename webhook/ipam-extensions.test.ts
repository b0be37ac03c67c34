import { expect } from 'chai';
import { claimName, swappedClaimName } from '../api/ipam-claim.js';
import { ipamExtensionsClaimName } from '../api/vm-claims.js';
import {
  makeClaim,
  makeLauncherPod,
  makeNad,
  makeVm,
  makeVmi,
  networksValue,
} from '../test/objects/kubevirt-objects.js';
import { type ReviewedCluster, VM1, referencesAfter, reviewCreate, reviewUpdate } from '../test/objects/pod-review.js';
import { claimOfIpamExtensions, vmReference } from '../test/objects/workload-objects.js';

const theirs = (vmNetwork: string, network = 'blue') =>
  claimOfIpamExtensions({ name: ipamExtensionsClaimName('vm1', vmNetwork), network, owner: vmReference('vm1-vm-uid') });
const ours = (vmNetwork: string) => makeClaim('vm1', vmNetwork);

/** kubevirt/ipam-extensions takes the last network of a NAD for all of its elements. */
interface GivenPod {
  name: string;
  networks: Record<string, string>;
  claims: ReviewedCluster['claims'];
  /** The references that the webhook of kubevirt/ipam-extensions has added. */
  given: Record<string, string>;
  expect: (string | undefined)[];
  warnings?: number;
}

const PODS: GivenPod[] = [
  {
    name: 'refers to the claim of Holdfast if both have created one',
    networks: { net_1: 'blue' },
    claims: [ours('net_1'), theirs('net_1')],
    given: { net_1: 'vm1.net.1' },
    expect: [claimName('vm1', 'net_1')],
    warnings: 1,
  },
  {
    name: 'refers to the claim of Holdfast even if the name of the other claim sorts before it',
    networks: { Data: 'blue' },
    claims: [ours('Data'), theirs('Data')],
    given: { Data: 'vm1.data' },
    expect: [claimName('vm1', 'Data')],
    warnings: 1,
  },
  {
    name: 'refers to the claim of Holdfast if none of them is in the cache yet',
    networks: { net_1: 'blue' },
    claims: [],
    given: { net_1: 'vm1.net.1' },
    expect: [claimName('vm1', 'net_1')],
    warnings: 1,
  },
  {
    name: 'refers to the claim of kubevirt/ipam-extensions if Holdfast has none',
    networks: { net_1: 'blue' },
    claims: [theirs('net_1')],
    given: { net_1: 'vm1.net.1' },
    expect: ['vm1.net.1'],
  },
  {
    name: 'refers to one claim for each interface on one NAD',
    networks: { data: 'blue', more: 'blue' },
    claims: [ours('data'), ours('more')],
    given: { data: 'vm1.more', more: 'vm1.more' },
    expect: ['vm1.data', 'vm1.more'],
    warnings: 1,
  },
  {
    name: 'refers to the second claim of an interface whose NAD was swapped',
    networks: { data: 'green' },
    claims: [makeClaim('vm1', 'data', { nad: 'blue', network: 'blue' })],
    given: { data: 'vm1.data' },
    expect: [swappedClaimName('vm1', 'data', 'green')],
    warnings: 1,
  },
];

describe('a launcher pod to which kubevirt/ipam-extensions has added references', () => {
  for (const { name, networks, claims = [], given, expect: expected, warnings = 0 } of PODS) {
    it(name, () => {
      const vmi = makeVmi('vm1', networks);
      const cluster = { vmis: [vmi], vms: [makeVm('vm1')], nads: [makeNad('blue'), makeNad('green')], claims };
      const before = networksValue(vmi, given);
      const verdict = reviewCreate(cluster, before, makeLauncherPod(vmi, before));
      expect(referencesAfter(verdict, before)).to.deep.equal(expected);
      expect(verdict.allowed && verdict.warnings).to.have.length(warnings);
    });
  }

  it('keeps the references of Holdfast when it is changed', () => {
    const vmi = makeVmi('vm1', { data: 'blue', more: 'blue' });
    const cluster = {
      vmis: [vmi],
      vms: [makeVm('vm1')],
      nads: [makeNad('blue')],
      claims: [ours('data'), ours('more')],
    };
    const before = networksValue(VM1, { data: 'vm1.data' });
    const after = networksValue(vmi, { data: 'vm1.more', more: 'vm1.more' });
    expect(referencesAfter(reviewUpdate(cluster, before, after), after)).to.deep.equal(['vm1.data', 'vm1.more']);
  });

  it('is refused if a reference names a claim that kubevirt/ipam-extensions gives to no network on the NAD', () => {
    const vmi = makeVmi('vm1', { data: 'blue', more: 'green' });
    const cluster = {
      vmis: [vmi],
      vms: [makeVm('vm1')],
      nads: [makeNad('blue'), makeNad('green')],
      claims: [ours('data'), ours('more')],
    };
    for (const reference of ['vm1.more', 'vm2.data']) {
      const before = networksValue(vmi, { data: reference });
      const verdict = reviewCreate(cluster, before, makeLauncherPod(vmi, before));
      expect(verdict).to.deep.include({ allowed: false, check: 'reference-expected' });
    }
  });
});
