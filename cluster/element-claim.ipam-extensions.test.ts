import { expect } from 'chai';
import { claimName } from '../api/ipam-claim.js';
import { makeLauncherPod, makeVm, makeVmi, makeNad, networksValue } from '../test/objects/kubevirt-objects.js';
import { type ReviewedCluster, referencesAfter, reviewCreate } from '../test/objects/pod-review.js';
import { type WorkloadClaimOptions, claimOfIpamExtensions, vmReference } from '../test/objects/workload-objects.js';

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
