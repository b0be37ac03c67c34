import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import { LAUNCHER_CREATOR, LAUNCHERS_VERIFIED } from '../../api/names.js';
import { podInterfaceName } from '../../api/pod.js';
import { CONFIG_MAPS } from '../../kube/resources.js';
import { environment } from '../../bed/story/hooks.js';
import { describeStory } from '../../bed/story/describe.js';
import { Tenant } from '../../bed/story/tenant.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const DATA = podInterfaceName('data');
const POLICIES = { namespace: 'holdfast-system', name: 'holdfast-policies' };

describeStory('While the policies have a wrong namespace of KubeVirt', (story) => {
  async function setNamespace(kubevirtNamespace: string): Promise<void> {
    await environment().client.patch(CONFIG_MAPS, POLICIES, { type: 'merge', body: { data: { kubevirtNamespace } } });
  }

  /** Waits until the claim's condition reports, or no longer reports, that no pod gets its addresses. @returns its message */
  async function untilClaimSays(isKnown: boolean): Promise<string> {
    const claim = await untilValue(
      `vm1.data ${isKnown ? 'to say nothing' : 'to say why no pod gets its addresses'}`,
      () => story().waitForClaim('vm1.data'),
      ({ status }) => isKnown !== (status?.conditions ?? []).some(({ type }) => type === LAUNCHERS_VERIFIED),
    );
    return claim.status?.conditions?.find(({ type }) => type === LAUNCHERS_VERIFIED)?.message ?? '';
  }

  itWithWireStory(
    'launchers are admitted and wait, and only those that KubeVirt created get addresses when it is corrected',
    story,
    async (wire) => {
      await story().addresses.createNetwork('blue', ['10.75.8.0/24']);
      await story().runVm('vm1', { data: 'blue' });
      const addresses = await story().addresses.waitForIPs('vm1.data');
      const launcher = await wire.launcher('vm1');
      const tenant = await Tenant.createPodCreator(environment(), story().namespace, 'kubevirt-controller');
      try {
        await setNamespace('elsewhere');
        expect(await untilClaimSays(false)).to.include('set it to kubevirt');
        await until('a forged launcher is admitted', () => tenant.copyLauncher(launcher));
        await story().createVm('vm2', { data: 'blue' });
        const [admitted] = await untilValue(
          'the launcher of vm2 to be admitted',
          () => story().launchers('vm2'),
          ([found]) => found !== undefined,
        );
        expect(admitted!.metadata.annotations?.[LAUNCHER_CREATOR]).to.equal(
          'system:serviceaccount:kubevirt:kubevirt-controller',
        );
        const words = await wire.waitForSandboxFailure(admitted!.metadata.name, /may not use an IPAMClaim/);
        expect(words).to.include('"elsewhere"').and.to.include('set it to kubevirt');
        await story().waitForEvent('vm1', 'KubeVirtNamespaceUnknown', /set it to kubevirt/);
      } finally {
        await setNamespace('kubevirt');
        await untilClaimSays(true);
      }
      await story().waitRunning('vm2');
      await wire.waitForAddresses(await wire.launcher('vm2'), DATA, await story().addresses.waitForIPs('vm2.data'));
      const words = await wire.waitForSandboxFailure('forged', /it was created by/);
      expect(words).to.include(`system:serviceaccount:${story().namespace}:kubevirt-controller`);
      await tenant.close();
      await wire.deletePod('forged');
      await wire.waitForAddresses(launcher, DATA, addresses);
      expect((await story().addresses.leases()).get(bareAddress(addresses[0]!))?.spec.owner).to.include({
        name: 'vm1.data',
      });
    },
  );
});
