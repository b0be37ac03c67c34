import { expect } from 'chai';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { Pod } from '../../api/pod.js';
import { Informer } from '../../kube/informers/informer.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { untilValue } from '../../bed/processes/wait.js';
import { environment } from '../../bed/story/hooks.js';
import { OvnClusterManager } from '../../bed/ovn-kubernetes/cluster-manager.js';
import { describeStory, itOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';

const SUBNET = '10.128.0.0/24';

/** Creates the NAD of an OVN-Kubernetes network. */
async function createOvnNetwork(story: Story, topology: object, subnets = SUBNET): Promise<void> {
  const { namespace } = story;
  const common = { cniVersion: '0.4.0', type: 'ovn-k8s-cni-overlay', name: 'ovn-blue', allowPersistentIPs: true };
  await story.network('blue', { config: { ...common, netAttachDefName: `${namespace}/blue`, subnets, ...topology } });
}

/** The parts of a claim on which OVN-Kubernetes relies. */
function lastingPart({ metadata: { namespace, name, uid }, spec, status }: IPAMClaim) {
  return { namespace, name, uid, spec, status };
}

describeStory('A claim that OVN-Kubernetes serves', (story) => {
  let ovn: OvnClusterManager | undefined;

  afterEach('stop OVN-Kubernetes', async () => {
    await ovn?.stop();
    ovn = undefined;
  });

  async function startOvn(subnets = [SUBNET]): Promise<OvnClusterManager> {
    const nad = { namespace: story().namespace, name: 'blue' };
    ovn = await OvnClusterManager.start(environment(), { nad, network: 'ovn-blue', subnets });
    return ovn;
  }

  /** Waits until the claim has a status. */
  const waitServed = (name: string) =>
    story().claims.waitFor(name, 'to have addresses', ({ status }) => (status?.ips ?? []).length > 0);

  const topologies = {
    'layer 2': { topology: 'layer2' },
    localnet: { topology: 'localnet', physicalNetworkName: 'physnet1', vlanID: 42 },
  };
  for (const [topology, config] of Object.entries(topologies)) {
    it(`keeps name, spec, status and ownerPod on a ${topology} network through migration, restart, unplug and deletion`, async () => {
      await createOvnNetwork(story(), config);
      const manager = await startOvn();
      const { journal } = manager;
      await story().runVm('vm1', { data: 'blue', extra: 'blue' });
      const [data, extra] = [await waitServed('vm1.data'), await waitServed('vm1.extra')];
      const expectKept = async (...claims: IPAMClaim[]) => {
        const found = await Promise.all(claims.map(({ metadata }) => story().waitForClaim(metadata.name)));
        expect(found.map(lastingPart)).to.deep.equal(claims.map(lastingPart));
        // after an unplug the annotation still shows the interface
        const isAnnotated = (pods: Pod[]) => {
          const shown = pods.flatMap((pod) => manager.addressesOf(pod)).map(String);
          return pods.length === 1 && claims.every(({ status }) => shown.includes(String(status?.ips)));
        };
        await untilValue('the launcher to have the addresses', () => story().launchers('vm1'), isAnnotated);
      };
      await expectKept(data, extra);
      await story().migrate('vm1', 'Succeeded');
      await expectKept(data, extra);
      await story().restart('vm1');
      await expectKept(data, extra);
      await story().unplugInterface('vm1', 'extra');
      await story().waitForClaims(['vm1.data']);
      await expectKept(data);

      await story().deleteVm('vm1', 'Background');
      await story().waitForClaims([]);
      const all = [...(data.status?.ips ?? []), ...(extra.status?.ips ?? [])];
      await untilValue(
        'all addresses to be released',
        () => [...journal.released].sort().join(),
        (ips) => ips === all.sort().join(),
      );
      expect(journal.releasedInUse).to.deep.equal([]);
      expect(journal.conflicts).to.deep.equal([]);
      expect([...journal.statuses.values()]).to.deep.equal([[data.status], [extra.status]]);
    });
  }

  it('is not written by Holdfast between its creation and its first status, so that the write of OVN-Kubernetes cannot conflict', async () => {
    await createOvnNetwork(story(), topologies['layer 2']);
    const claims = new Informer(story().client, IPAM_CLAIMS, { namespace: story().namespace });
    const versions: (string | undefined)[] = [];
    claims.onChange(({ object }) => {
      if (object.metadata.name === 'vm1.data') versions.push(object.metadata.resourceVersion);
    });
    claims.start();
    try {
      await claims.synced();
      await story().runVm('vm1', { data: 'blue' });
      await story().waitControllerIdle();
      expect(versions).to.have.length(1);
      const { journal } = await startOvn();
      const served = await waitServed('vm1.data');
      await story().waitControllerIdle();
      expect((await story().waitForClaim('vm1.data')).metadata.resourceVersion).to.equal(
        served.metadata.resourceVersion,
      );
      expect(journal.conflicts).to.deep.equal([]);
    } finally {
      await claims.stop();
    }
  });

  it('keeps its addresses while a launcher lives, although its VM is deleted without its VMI, and the claim by a user', async () => {
    await createOvnNetwork(story(), topologies['layer 2']);
    const { journal } = await startOvn();
    await story().runVm('vm1', { data: 'blue' });
    const claim = await waitServed('vm1.data');
    await story().deleteVm('vm1', 'Orphan');
    await story().waitVmObjectGone('vm1');
    await story().claims.remove('vm1.data');
    await story().waitControllerIdle();
    expect(journal.released).to.deep.equal([]);
    await story().deleteVmi('vm1');
    await story().waitForClaims([]);
    await untilValue(
      'the addresses to be released',
      () => journal.released.join(),
      (ips) => ips === claim.status?.ips?.join(),
    );
    expect(journal.releasedInUse).to.deep.equal([]);
  });

  itOnBed('outlives a guest that does not shut down, and its addresses are released afterwards', async (bed) => {
    await createOvnNetwork(story(), topologies.localnet);
    const { journal } = await startOvn();
    await story().runVm('vm1', { data: 'blue' });
    const { status } = await waitServed('vm1.data');
    const release = bed.switches.set({ holdTermination: true }, { namespace: story().namespace });
    await story().deleteVm('vm1', 'Foreground');
    await story().waitBeingDeleted('vm1');
    await story().waitControllerIdle();
    expect(journal.released).to.deep.equal([]);
    release();
    await story().waitForClaims([]);
    await untilValue(
      'the addresses to be released',
      () => journal.released.join(),
      (ips) => ips === status?.ips?.join(),
    );
    expect(journal.releasedInUse).to.deep.equal([]);
  });

  it('keeps the refusal that OVN-Kubernetes writes, and gets an address when one is released', async () => {
    const tiny = '10.128.1.0/30';
    await createOvnNetwork(story(), topologies['layer 2'], tiny);
    const { journal } = await startOvn([tiny]);
    for (const name of ['vm1', 'vm2']) {
      await story().runVm(name, { data: 'blue' });
      await waitServed(`${name}.data`);
    }
    await story().createVm('vm3', { data: 'blue' });
    const reason = 'SubnetExhausted';
    const refused = await story().claims.waitFor('vm3.data', `to report ${reason}`, ({ status }) =>
      (status?.conditions ?? []).some((condition) => condition.reason === reason),
    );
    await story().waitControllerIdle();
    expect((await story().waitForClaim('vm3.data')).status).to.deep.equal(refused.status);
    await story().deleteVm('vm1', 'Background');
    const served = await waitServed('vm3.data');
    expect(journal.statuses.get(served.metadata.uid ?? '')?.map(({ ips }) => ips)).to.deep.equal([
      [],
      served.status?.ips,
    ]);
  });
});
