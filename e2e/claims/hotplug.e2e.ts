import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { describeStory, itOnBed } from '../../bed/story/describe.js';
import { environment } from '../../bed/story/hooks.js';

const DATA = podInterfaceName('data');
const EXTRA = podInterfaceName('extra');

describeStory('An interface plugged into a running VM', (story) => {
  beforeEach(() => story().network('blue'));

  it('gets its claim at once, loses it when it is unplugged, and gets another one when it is plugged again', async () => {
    await story().runVm('vm1', { data: 'blue' });
    const kept = await story().waitForClaim('vm1.data');
    const [launcher] = await story().launchers('vm1');
    await story().plugInterface('vm1', 'extra', 'blue');
    const first = await story().waitForClaim('vm1.extra');
    await story().waitAttached('vm1', 'extra');
    expect((await story().launchers('vm1'))[0]?.metadata.uid).to.equal(launcher?.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data', [EXTRA]: 'vm1.extra' }]);

    await story().unplugInterface('vm1', 'extra');
    await story().waitForClaims(['vm1.data']);
    await story().waitDetached('vm1', 'extra');
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(kept.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);

    await story().plugInterface('vm1', 'extra', 'blue');
    await story().waitAttached('vm1', 'extra');
    expect((await story().waitForClaim('vm1.extra')).metadata.uid).not.to.equal(first.metadata.uid);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data', [EXTRA]: 'vm1.extra' }]);
  });

  it('keeps its claim while the running VM still has it, although its spec has not', async () => {
    await story().runVm('vm1', { data: 'blue', extra: 'blue' });
    const claim = await story().waitForClaim('vm1.extra');
    await story().removeFromSpec('vm1', 'extra');
    await story().waitControllerIdle();
    expect((await story().waitForClaim('vm1.extra')).metadata.uid).to.equal(claim.metadata.uid);
    await story().stop('vm1');
    await story().waitForClaims(['vm1.data']);
  });
});

describeStory('Without a hotplug controller', (story) => {
  itOnBed('an unplugged interface keeps its claim until no launcher has it', async (bed) => {
    await story().network('blue');
    await story().runVm('vm1', { data: 'blue', extra: 'blue' });
    const claim = await story().waitForClaim('vm1.extra');
    bed.switches.set({ dynamicNetworks: false }, { namespace: story().namespace });
    await story().unplugInterface('vm1', 'extra');
    await story().waitElementGone('vm1', 'extra');
    await story().waitControllerIdle();
    expect((await story().waitForClaim('vm1.extra')).metadata.uid).to.equal(claim.metadata.uid);
    await story().migrate('vm1', 'Succeeded');
    await story().waitForClaims(['vm1.data']);
  });
});

describeStory('A running VM whose network changes to another NAD', (story) => {
  it('gets a second claim, and loses the first one when no launcher references it', async () => {
    await story().network('blue');
    await story().network('green');
    const before = await story().runVm('vm1', { data: 'blue' });
    const old = await story().waitForClaim('vm1.data');
    const isMigrated = await story().hasFeatureGate('LiveUpdateNADRef');
    const letGo = environment().bed?.switches.set({ migration: 'hold' }, { namespace: story().namespace });
    await story().swapNetwork('vm1', 'data', 'green');
    const second = await story().claims.ofNetwork('green-net');
    expect(second.metadata.name).to.match(/^vm1\.data-[0-9a-f]{10}$/);
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(old.metadata.uid);

    letGo?.();
    if (isMigrated) await story().migrations.waitMovedFrom('vm1', before);
    else await story().restart('vm1');
    await story().waitForClaims([second.metadata.name]);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: second.metadata.name }]);
  });
});
