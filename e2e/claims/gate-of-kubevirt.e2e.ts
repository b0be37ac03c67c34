import { expect } from 'chai';
import { objectKey } from '../../api/meta.js';
import { IPAM_CLAIMS, KUBEVIRTS } from '../../kube/resources.js';
import { withProxy } from '../../bed/faults/api-proxy.js';
import { KUBEVIRT_NAMESPACE } from '../../bed/control-plane/kubevirt.js';
import { untilValue } from '../../bed/processes/wait.js';
import { describeOnBed } from '../../bed/story/describe.js';

const GATE = 'PersistentIPs';
const ARGS = ['--feature-gates-from-kubevirt'];
/** The KubeVirt object, and in which namespace the policies expect it. */
const ALWAYS = ['configmaps', 'kubevirts'];
const WORKLOADS = ['ipamclaims', 'virtualmachineinstances', 'virtualmachines'];
/** What the controller needs to release claims: also launchers, and namespaces that are being deleted. NADs only while there are claims. */
const CONTROLLER = [...ALWAYS, ...WORKLOADS, 'namespaces', 'pods'].sort();
/** What the webhook needs for pods of VMs that have claims, for requests of capacity, and for its certificate. */
const WEBHOOK = [
  ...[...ALWAYS, ...WORKLOADS, 'network-attachment-definitions'],
  ...['addresspools', 'mutatingwebhookconfigurations', 'secrets'],
];

describeOnBed('The feature gate of the KubeVirt object', (story, bed) => {
  const object = { namespace: KUBEVIRT_NAMESPACE, name: 'kubevirt' };

  async function set(isOpen: boolean): Promise<void> {
    const { client } = story();
    const found = await client.get(KUBEVIRTS, object);
    const others =
      found.spec?.configuration?.developerConfiguration?.featureGates?.filter((gate) => gate !== GATE) ?? [];
    const featureGates = isOpen ? [...others, GATE] : others;
    const spec = { configuration: { developerConfiguration: { featureGates } } };
    await client.patch(KUBEVIRTS, object, { type: 'merge', body: { spec } });
  }

  function untilWatched(proxy: { readonly watched: string[] }, kinds: readonly string[]): Promise<unknown> {
    const wanted = [...kinds].sort().join();
    return untilValue(
      'the open watches',
      () => Promise.resolve(proxy.watched.join()),
      (found) => found === wanted,
    );
  }

  it('is followed while the controller runs: closed, VMs get no claims, claims are released, and without claims NADs and quotas are not watched', async () => {
    // on a busy machine, VMs of earlier stories take long to end
    const claims = async () => (await story().client.list(IPAM_CLAIMS)).items.map(objectKey);
    await untilValue('the claims of earlier stories to be gone', claims, (left) => left.length === 0, {
      timeoutMs: 180_000,
    });
    const opened = [...CONTROLLER, 'network-attachment-definitions', 'resourcequotas'];
    await withProxy({ bed: bed(), process: bed().controller, args: ARGS }, async ({ proxy }) => {
      await untilWatched(proxy, CONTROLLER);
      await story().network('blue');
      try {
        await set(true);
        await untilWatched(proxy, opened);
        await story().createVm('first', { data: 'blue' }, { running: false });
        await story().waitForClaim('first.data');

        await set(false);
        await untilWatched(proxy, [...CONTROLLER, 'network-attachment-definitions']);
        await story().createVm('second', { data: 'blue' }, { running: false });
        // a claim that is released after the VM was created shows that the controller has looked at it
        await story().deleteVm('first', 'Background');
        await story().claims.waitGone('first.data');
        expect(await story().claimNames()).to.deep.equal([]);
        await untilWatched(proxy, CONTROLLER);
        expect(proxy.writes.filter((what) => what.includes('/second'))).to.deep.equal([]);
        // the controller learns of this NAD when the gate opens
        await story().network('green');
        await story().createVm('third', { data: 'green' }, { running: false });

        await set(true);
        await story().waitForClaim('second.data');
        await story().waitForClaim('third.data');
        await untilWatched(proxy, opened);
      } finally {
        await set(false);
      }
    });
  });

  it('is followed by the webhook, which does not watch namespaces while it is closed', async () => {
    await withProxy({ bed: bed(), process: bed().webhook, args: ARGS }, async ({ proxy }) => {
      try {
        await untilWatched(proxy, WEBHOOK);
        await set(true);
        await untilWatched(proxy, [...WEBHOOK, 'namespaces']);
        await set(false);
        await untilWatched(proxy, WEBHOOK);
      } finally {
        await set(false);
      }
    });
  });
});
