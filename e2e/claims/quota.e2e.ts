import { CLAIM_COUNT } from '../../api/ipam-claim.js';
import { expect } from 'chai';
import { RESOURCE_QUOTAS } from '../../kube/resources.js';
import { podInterfaceName } from '../../api/pod.js';
import { until } from '../../bed/processes/wait.js';
import { describeStory } from '../../bed/story/describe.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');

describeStory('A ResourceQuota on IPAMClaims', (story) => {
  /** Creates a quota and waits until it is counted: before, the API server rejects every claim. */
  async function limitClaims(limit: number): Promise<void> {
    const metadata = story().ref('addresses');
    const spec = { hard: { [CLAIM_COUNT]: String(limit) } };
    await story().client.create(RESOURCE_QUOTAS, { metadata, spec } as never);
    await until('the quota to be counted', async () => {
      const { status } = await story().client.get(RESOURCE_QUOTAS, metadata);
      return status?.used?.[CLAIM_COUNT] !== undefined;
    });
  }

  itWithWireStory(
    'stops a VM with an event that names the quota, and the VM starts when another VM is deleted',
    story,
    async (wire) => {
      await story().addresses.createNetwork('blue', ['10.78.0.0/24']);
      await limitClaims(1);
      await story().runVm('vm1', { data: 'blue' });
      await story().createVm('vm2', { data: 'blue' });
      const { message } = await story().waitForEvent('vm2', 'IPAMClaimQuotaExceeded');
      expect(message).to.include(
        `IPAMClaim ${story().namespace}/vm2.data cannot be created: exceeded quota: addresses`,
      );
      expect(message).to.include(`limited: ${CLAIM_COUNT}=1`);
      expect(await story().claimNames()).to.deep.equal(['vm1.data']);
      const [waiting] = await story().launchers('vm2');
      expect(waiting?.status?.phase ?? 'Pending', 'the launcher waits for its addresses').to.equal('Pending');

      await story().deleteVm('vm1', 'Background');
      await story().waitRunning('vm2');
      const addresses = await story().addresses.waitForIPs('vm2.data');
      await wire.waitForAddresses(await wire.launcher('vm2'), DATA, addresses);
    },
  );

  it('lets the successor of a deleted claim have the same addresses, although the quota still counts that claim', async () => {
    await story().addresses.createNetwork('blue', ['10.78.0.0/24']);
    await limitClaims(1);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const claim = await story().waitForClaim('vm1.data');
    const before = await story().addresses.waitForIPs('vm1.data');
    await story().claims.remove('vm1.data');
    await story().claims.waitForSuccessor(claim);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(before);
  });

  it('lets all waiting VMs have their claims as soon as it is raised', async () => {
    await story().network('blue');
    await limitClaims(0);
    const names = ['vm1', 'vm2', 'vm3'];
    for (const name of names) await story().createVm(name, { data: 'blue' }, { running: false });
    for (const name of names) await story().waitForEvent(name, 'IPAMClaimQuotaExceeded');
    const body = { spec: { hard: { [CLAIM_COUNT]: '3' } } };
    await story().client.patch(RESOURCE_QUOTAS, story().ref('addresses'), { type: 'merge', body });
    await story().waitForClaims(names.map((name) => `${name}.data`));
  });
});
