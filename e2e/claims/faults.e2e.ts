import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { PODS } from '../../kube/resources.js';
import { crashAfterEachWrite } from '../../bed/faults/crash-after-write.js';
import { creationReview, reviewAgent, sendReview } from '../../bed/holdfast/review.js';
import { describeOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until } from '../../bed/processes/wait.js';

const DATA = podInterfaceName('data');

describeOnBed('While the webhook is down', (story, bed) => {
  it('no VM with a secondary network starts, and it starts when the webhook is back', async () => {
    await story().network('blue');
    await bed().webhook.stop();
    try {
      await story().createVm('vm1', { data: 'blue' });
      await story().waitForEvent('vm1', 'FailedCreate', /holdfast/);
    } finally {
      await bed().webhook.start();
    }
    await story().waitRunning('vm1');
    expect(await story().references('vm1')).to.deep.equal([{ [DATA]: 'vm1.data' }]);
  });

  it('a running VM is not affected: its pod can be labelled, and the VM can be stopped and deleted', async () => {
    await story().network('blue');
    await story().runVm('vm1', { data: 'blue' });
    const [launcher] = await story().launchers('vm1');
    await bed().webhook.stop();
    try {
      const body = { metadata: { labels: { example: 'label' }, annotations: { example: 'annotation' } } };
      await story().client.patch(PODS, story().ref(launcher!.metadata.name), { type: 'merge', body });
      await story().deleteVm('vm1', 'Background');
      await story().waitGone('vm1');
      await story().waitForClaims([]);
    } finally {
      await bed().webhook.start();
    }
  });
});

describeOnBed('While the controller is down', (story, bed) => {
  it('no event is lost: VMs that were created, changed and deleted have the right claims when it is back', async () => {
    await story().network('blue');
    await story().createVm('leaves', { data: 'blue' });
    await story().createVm('stays', { data: 'blue', extra: 'blue' }, { running: false });
    await story().waitRunning('leaves');
    await story().waitForClaims(['leaves.data', 'stays.data', 'stays.extra']);
    await bed().controller.kill();
    try {
      await story().deleteVm('leaves', 'Background');
      await story().removeFromSpec('stays', 'extra');
      await story().runVm('comes', { data: 'blue' });
      expect(await story().references('comes')).to.deep.equal([{ [DATA]: 'comes.data' }]);
      await story().waitVmObjectGone('leaves');
    } finally {
      await bed().controller.start();
    }
    await story().waitForClaims(['comes.data', 'stays.data']);
  });
});

describeOnBed('A lost node', (story, bed) => {
  it('does not change the claim of its VM', async () => {
    await story().network('blue');
    await story().runVm('vm1', { data: 'blue' });
    const claim = await story().waitForClaim('vm1.data');
    const [launcher] = await story().launchers('vm1');
    const node = launcher?.spec?.nodeName ?? '';
    bed().switches.loseNode(node);
    await story().deleteVm('vm1', 'Background');
    await story().waitBeingDeleted('vm1');
    await story().waitControllerIdle();
    expect((await story().waitForClaim('vm1.data')).metadata.uid).to.equal(claim.metadata.uid);
    bed().switches.recoverNode(node);
    await story().waitGone('vm1');
    await story().waitForClaims([]);
  });
});

describeOnBed('A controller killed right after any of its writes', (story, bed) => {
  it('leaves nothing that the next start does not repair', async () => {
    // not those of earlier stories, whose VMs may still end
    const counts = (_method: string, path: string) => path.includes(`/namespaces/${story().namespace}/ipamclaims`);
    const deaths = await crashAfterEachWrite({ bed: bed(), process: bed().controller, counts }, (nth) =>
      lifeOf(`vm${String(nth)}`, story()),
    );
    // two creates, a delete and a finalizer for the unplugged interface, and at least one finalizer for the deleted VM
    expect(deaths).to.have.length.of.at.least(5);
  });
});

async function lifeOf(name: string, story: Story): Promise<void> {
  const [data, extra] = [`${name}.data`, `${name}.extra`];
  await story.network('blue');
  await story.runVm(name, { data: 'blue', extra: 'blue' });
  await story.waitForClaims([data, extra]);
  const uid = (await story.waitForClaim(data)).metadata.uid;
  await story.unplugInterface(name, 'extra');
  await story.waitForClaims([data]);
  await story.restart(name);
  expect((await story.waitForClaim(data)).metadata.uid).to.equal(uid);
  expect(await story.references(name)).to.deep.equal([{ [DATA]: data }]);
  await story.deleteVm(name, 'Background');
  await story.waitGone(name);
  await story.waitForClaims([]);
}

describeOnBed('While the API server is down', (story, bed) => {
  it('the webhook answers from its cache and stays ready', async () => {
    await story().network('blue');
    await story().runVm('vm1', { data: 'blue' });
    const [launcher] = await story().launchers('vm1');
    const agent = reviewAgent(1);
    await bed().apiServer.kill();
    try {
      const answer = await sendReview(bed().webhook.ports.webhook, creationReview(launcher!, 'a-review'), agent);
      expect(answer).to.include({ uid: 'a-review', allowed: true });
      expect(Buffer.from(answer.patch ?? '', 'base64').toString()).to.include('vm1.data');
      expect(await bed().webhook.isReady()).to.equal(true);
    } finally {
      await agent.close();
      await bed().apiServer.start();
    }
    await until('the API server to serve the story again', async () => (await story().claimNames()).length === 1);
  });
});
