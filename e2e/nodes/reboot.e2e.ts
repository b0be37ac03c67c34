import { expect } from 'chai';
import { podInterfaceName } from '../../api/pod.js';
import { waitNodeReady } from '../../bed/real-nodes/rollout.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import { waitForEvent } from '../../bed/story/events.js';
import { describeOnNodes } from '../../bed/story/nodes.js';
import { PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';

const SUBNET = '10.82.0.0/29';
const POD_ADDRESSES = 6;
const COOLDOWN_SECONDS = 1;

describeOnNodes('A real node that loses its power', (story, nodes) => {
  it('starts its pods and VMs again with the addresses that they had, and leaks none', async function () {
    this.timeout(300_000); // kubelet collects sandboxes once in a minute
    await nodes().createNetwork('blue', [SUBNET], { cooldownSeconds: COOLDOWN_SECONDS });
    const { addresses, client, namespace } = story();
    const networks = [{ name: 'blue' }];
    const vmi = await story().runVm('web', { data: 'blue' });
    const node = nodes().node((await story().launchers('web'))[0]?.spec?.nodeName);
    const other = nodes().names.find((name) => name !== node.name)!;
    const [keeps, goes] = await Promise.all(
      ['keeps', 'goes'].map((name) => nodes().createPod(name, { networks, node: node.name })),
    );
    const [vmAddress = ''] = await addresses.waitForIPs('web.data');
    const [kept, freed] = [await nodes().addressOf(keeps!, 'net1'), await nodes().addressOf(goes!, 'net1')];
    const mine = [vmAddress, kept, freed].map(bareAddress);
    const observer = new ClaimLeaseObserver(client, {
      space: (await addresses.leases()).get(mine[0]!)!.spec.addressSpace,
      cooldownMs: COOLDOWN_SECONDS * 1_000,
      namespace,
    });
    observer.start();
    // Kubelet sends DEL for the pod that is gone when it collects garbage, once in a minute: that is not awaited.
    const late = await node.containers('sandbox', story().ref('goes'));
    const sandboxes = (await node.containers('sandbox')).filter((id) => !late.includes(id));

    await node.powerOff();
    const others = ['a', 'b', 'c'];
    await Promise.all(others.map((name) => nodes().createPod(name, { networks, node: other })));
    const full = await addresses.heldAddresses();
    expect(full).to.include.members(mine).and.to.have.length(POD_ADDRESSES);
    await nodes().requestPod('waits', { networks, node: other });
    await waitForEvent(client, story().ref('waits'), 'FailedCreatePodSandBox', /full/);
    await Promise.all(
      ['waits', 'goes'].map((name) => client.delete(PODS, story().ref(name), { gracePeriodSeconds: 0 })),
    );
    await node.boot();
    await waitNodeReady(nodes().cluster, node.name);

    const restarted = await nodes().waitRestarted(keeps!);
    expect(await nodes().addressOf(restarted, 'net1')).to.equal(kept);
    await story().waitReplaced('web', vmi);
    const [launcher] = await story().launchers('web');
    expect(await nodes().addressOf(launcher!, podInterfaceName('data'))).to.equal(vmAddress);
    await addresses.waitHeld(full.filter((address) => address !== bareAddress(freed)));
    await nodes().waitNoTrace(node, sandboxes);
    await observer.stop();
    expect(observer.events).to.be.above(0);
    expect(observer.violations).to.deep.equal([]);

    await story().deleteVm('web', 'Background');
    await Promise.all(['keeps', ...others].map((name) => client.delete(PODS, story().ref(name))));
    await addresses.waitHeld([]);
  });
});
