import { expect } from 'chai';
import { SERVED_CLAIM, observationOf, describeStep } from './testing/claim-observation.js';
import { vmReference } from '../../test/objects/workload-objects.js';
import { plan } from './plan.js';
import { runningAddressesOf } from './running/running-addresses.js';
import type { LauncherVmis } from './running/vmi-owners.js';

describe('the next step of a claim whose launcher names a VMI', () => {
  const vmi = { name: 'vm1', uid: 'u1' };
  function stepWith(vmis: Partial<LauncherVmis>): string {
    const observed = observationOf(SERVED_CLAIM);
    const pods = [{ metadata: { name: 'p1', namespace: 'vms', uid: 'p1' }, isTerminal: false, claims: [], vmi }];
    const none = new Set<string>();
    const metadata = { ...observed.claim.metadata, ownerReferences: [vmReference('vm-uid')] };
    const claim = { ...observed.claim, metadata };
    const held = observed.held.map((lease) => ({ ...lease, owner: { ...lease.owner!, workloadUID: 'vm-uid' } }));
    const named = { verifiedPods: none, unverifiedVmis: none, vmisToRead: none, unreadableVmis: none, ...vmis };
    return describeStep(
      plan({ ...observed, claim, held, pods, launcherVmis: named }, { isLive: true, arePodsLive: true }),
    );
  }

  it('is to read the VMI before the pod becomes the owner pod', () => {
    expect(stepWith({ unverifiedVmis: new Set(['u1']), vmisToRead: new Set(['u1']) })).to.equal('read-vmi');
  });

  it('is to write the owner pod once its VMI is verified', () => {
    expect(stepWith({ verifiedPods: new Set(['p1']) })).to.equal('write [10.0.0.5/24] SuccessfulAllocation; owner p1');
  });

  it('is to report that no pod gets the addresses while the creator of launchers is unknown', () => {
    expect(stepWith({ problem: 'kubevirtNamespace is wrong' })).to.equal(
      'write [10.0.0.5/24] SuccessfulAllocation; KubeVirtNamespaceUnknown: kubevirtNamespace is wrong',
    );
  });

  it('is none if the VMI was read a moment ago and could not be verified', () => {
    expect(stepWith({ unverifiedVmis: new Set(['u1']) })).to.match(/^none/);
  });

  it('is none if the claim shows nothing and the VMI of a launcher with addresses cannot be read', () => {
    const observed = observationOf({});
    const metadata = { ...observed.claim.metadata, ownerReferences: [vmReference('vm-uid')] };
    const claim = { ...observed.claim, metadata };
    const interfaces = JSON.stringify([{ name: claim.spec.interface, nad: 'vms/blue', ips: ['10.0.0.5'] }]);
    const pods = [
      { metadata: { name: 'p1', namespace: 'vms', uid: 'p1' }, isTerminal: false, claims: [], vmi, interfaces },
    ];
    const launcherVmis = { ...observed.launcherVmis, unverifiedVmis: new Set(['u1']), unreadableVmis: new Set(['u1']) };
    const [pool] = observed.pools;
    const running = runningAddressesOf({ claim, pods, launcherVmis, pool: pool!, held: [], leasesOf: () => [] });
    const step = plan({ ...observed, claim, pods, launcherVmis, running }, { isLive: true, arePodsLive: true });
    expect(describeStep(step)).to.equal('none: the VMI of a launcher that has addresses cannot be read');
  });
});
