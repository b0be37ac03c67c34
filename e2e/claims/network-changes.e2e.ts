import { expect } from 'chai';
import { isBeingDeleted } from '../../api/meta.js';
import { podInterfaceName } from '../../api/pod.js';
import { bareAddress } from '../../test/bare-address.js';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { withProxy } from '../../bed/faults/api-proxy.js';
import { describeOnBed, describeStory, itOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { waitForVmi } from '../../bed/story/vms/vm.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';
import { until } from '../../bed/processes/wait.js';

const DATA = podInterfaceName('data');
const EXTRA = podInterfaceName('extra');

describeStory('An interface that is unplugged during a migration', (story) => {
  itOnBed('keeps its claim until no launcher has it, and the other interface keeps its address', async (bed) => {
    await story().addresses.createNetwork('blue', ['10.77.0.0/24']);
    await story().runVm('vm1', { data: 'blue', extra: 'blue' });
    const kept = await story().addresses.waitForIPs('vm1.data');
    const extra = await story().waitForClaim('vm1.extra');
    const copy = bed.switches.set({ migration: 'hold' }, { namespace: story().namespace });
    const migration = await story().migrations.start('vm1');
    await story().migrations.waitCopying(migration);
    expect(await story().migrations.waitForBothReferences('vm1')).to.deep.equal([
      { [DATA]: 'vm1.data', [EXTRA]: 'vm1.extra' },
      { [DATA]: 'vm1.data', [EXTRA]: 'vm1.extra' },
    ]);

    await story().unplugInterface('vm1', 'extra');
    await story().waitControllerIdle();
    const claim = await story().waitForClaim('vm1.extra');
    expect(claim.metadata.uid).to.equal(extra.metadata.uid);
    expect(isBeingDeleted(claim)).to.equal(false);

    copy();
    expect(await story().migrations.waitEnded(migration)).to.equal('Succeeded');
    await story().migrations.waitForOneLauncher('vm1');
    const claims = await story().claimNames();
    const [references = {}] = await story().references('vm1');
    expect(claims.includes('vm1.extra') || references[EXTRA] === undefined).to.equal(true);
    // KubeVirt may leave the interface in the target, if the source has lost it before the guest moved
    await story().restart('vm1');
    await story().waitForClaims(['vm1.data']);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(kept);
  });
});

describeStory('A network that is renamed in the VM', (story) => {
  it('keeps its address if the VM requests it under the new name', async () => {
    await story().addresses.createNetwork('blue', ['10.77.1.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    const mine = await story().addresses.waitForIPs('vm1.data');
    await story().stop('vm1');
    await story().requestAddresses('vm1', { front: mine.map(bareAddress) });
    await story().renameNetwork('vm1', 'data', 'front');
    await story().waitForClaims(['vm1.front']);
    await story().addresses.waitForExactIPs('vm1.front', mine);
    await story().start('vm1');
    expect(await story().references('vm1')).to.deep.equal([{ [podInterfaceName('front')]: 'vm1.front' }]);
  });

  it('has both claims while the VM runs, and only that of the new name after a restart', async () => {
    await story().addresses.createNetwork('blue', ['10.77.2.0/24']);
    await story().runVm('vm1', { data: 'blue' });
    const mine = await story().addresses.waitForIPs('vm1.data');
    await story().renameNetwork('vm1', 'data', 'front');
    await story().waitForClaims(['vm1.data', 'vm1.front']);
    expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(mine);
    await story().restart('vm1');
    await story().waitForClaims(['vm1.front']);
  });
});

describeStory('A VM with four networks', (story) => {
  itWithWireStory('migrates with the addresses of all of them', story, async (wire) => {
    const names = ['one', 'two', 'three', 'four'];
    for (const [index, name] of names.entries()) {
      await story().addresses.createNetwork(name, [`10.77.${index + 10}.0/24`, `fd00:77:${index}::/64`]);
    }
    await story().createVm('vm1', Object.fromEntries(names.map((name) => [name, name])));
    await story().waitRunning('vm1');
    const addresses = await Promise.all(names.map((name) => story().addresses.waitForIPs(`vm1.${name}`)));
    await story().migrate('vm1', 'Succeeded');
    const target = await wire.launcher('vm1');
    for (const [index, name] of names.entries()) {
      expect(addresses[index]).to.have.length(2);
      await wire.waitForAddresses(target, podInterfaceName(name), addresses[index]!);
    }
  });
});

describeStory('A NAD swap', (story) => {
  beforeEach(async function () {
    if (!(await story().hasFeatureGate('LiveUpdateNADRef'))) this.skip();
  });

  itWithWireStory('to another NAD of the same network keeps claim and address', story, async (wire) => {
    const network = await story().addresses.createNetwork('blue', ['10.77.22.0/24']);
    await story().network('blue-too', { network, subnets: [{ cidr: '10.77.22.0/24' }] });
    const before = await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    const mine = await story().addresses.waitForIPs('vm1.data');
    await story().swapNetwork('vm1', 'data', 'blue-too');
    await story().migrations.waitMovedFrom('vm1', before);
    const target = await wire.launcher('vm1');
    await wire.waitForAddresses(target, DATA, mine);
    expect((await wire.reportedInterface(target, DATA))?.name).to.equal(`${story().namespace}/blue-too`);
    expect(await story().claimNames()).to.deep.equal(['vm1.data']);
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
  });

  itWithWireStory(
    'whose migration fails leaves claim and address as they are, and can be undone',
    story,
    async (wire) => {
      const { switches } = wire.context.bed;
      await story().addresses.createNetwork('blue', ['10.77.20.0/24']);
      await story().addresses.createNetwork('green', ['10.77.21.0/24']);
      await story().runVm('vm1', { data: 'blue' });
      const source = await wire.launcher('vm1');
      const old = await story().waitForClaim('vm1.data');
      const mine = await story().addresses.waitForIPs('vm1.data');
      const neighbour = await wire.createNeighbour('blue');
      switches.set({ migration: 'fail' }, { namespace: story().namespace });

      await story().swapNetwork('vm1', 'data', 'green');
      const { metadata: second } = await story().claims.ofNetwork(`${story().namespace}-green`);
      const migration = await story().migrations.waitCreated('vm1');
      expect(await story().migrations.waitEnded(migration)).to.equal('Failed');
      await story().migrations.waitForOneLauncher('vm1');
      expect((await wire.launcher('vm1')).metadata.uid).to.equal(source.metadata.uid);
      await story().waitControllerIdle();
      expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(old.metadata.uid);
      expect(await story().addresses.waitForIPs('vm1.data')).to.deep.equal(mine);
      expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
      await wire.waitReachable(neighbour, mine);

      await story().swapNetwork('vm1', 'data', 'blue');
      await story().claims.waitGone(second.name);
      expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(old.metadata.uid);
      await wire.waitForAddresses(source, DATA, mine);
    },
  );
});

describeOnBed('A controller killed at each step of a NAD swap', (story, bed) => {
  beforeEach(async function () {
    if (!(await story().hasFeatureGate('LiveUpdateNADRef'))) this.skip();
  });

  it('leaves the VM with one claim and one address, on the new network', async () => {
    await story().addresses.createNetwork('blue', ['10.77.30.0/24']);
    await story().addresses.createNetwork('green', ['10.77.31.0/24']);
    const before = await story().runVm('vm1', { data: 'blue' });
    await story().addresses.waitForIPs('vm1.data');
    const writes = await killedAtEachStep({ bed: bed(), story: story(), before }, () =>
      story().swapNetwork('vm1', 'data', 'green'),
    );
    expect(writes).to.deep.equal(['POST', 'DELETE']);
    const { metadata } = await story().claims.ofNetwork(`${story().namespace}-green`);
    await story().waitForClaims([metadata.name]);
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: metadata.name }]);
    const addresses = await story().addresses.waitForIPs(metadata.name);
    expect(addresses).to.have.length(1);
    await story().addresses.waitHeld(addresses.map(bareAddress));
  });
});

/**
 * Kills the controller right after it has created or deleted a claim, and when KubeVirt has updated the VMI, created the migration, prepared its target, and removed
 * its source. The controller starts again at once.
 * @returns the verbs of the writes after which it was killed
 */
async function killedAtEachStep(
  { bed, story, before }: { bed: BedWithHoldfast; story: Story; before: VirtualMachineInstance },
  act: () => Promise<void>,
): Promise<string[]> {
  const { controller, switches } = bed;
  const copy = switches.set({ migration: 'hold' }, { namespace: story.namespace });
  const killedAfter: string[] = [];
  let restarted = Promise.resolve();
  let restart = () => restarted;
  const onWrite = (what: string) => {
    const [verb = '', path = ''] = what.split(' ');
    // the claims of earlier stories may still be deleted
    if (!path.includes(`/namespaces/${story.namespace}/ipamclaims`) || !['POST', 'DELETE'].includes(verb))
      return undefined;
    killedAfter.push(verb);
    return restart();
  };
  await withProxy({ bed, process: controller, onWrite }, async ({ start }) => {
    restart = () => (restarted = restarted.then(() => controller.kill()).then(start));
    await act();
    await until('the new claim to be created', () => killedAfter.includes('POST'));
    await restarted;
    const isUpdated = ({ spec }: VirtualMachineInstance) =>
      spec?.networks?.some(({ multus }) => multus?.networkName === 'green') === true;
    await waitForVmi(story.client, story.ref('vm1'), 'to have the new network', isUpdated);
    await restart();
    const migration = await story.migrations.waitCreated('vm1');
    await restart();
    await story.migrations.waitCopying(migration);
    await restart();
    copy();
    await story.migrations.waitMovedFrom('vm1', before);
    await restart();
    await until('the old claim to be deleted', () => killedAfter.includes('DELETE'));
    await restarted;
  });
  return killedAfter;
}
