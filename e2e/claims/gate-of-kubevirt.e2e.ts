import { expect } from 'chai';
import { KUBEVIRTS } from '../../kube/resources.js';
import { type ApiProxy, withProxy } from '../../bed/faults/api-proxy.js';
import { KUBEVIRT_NAMESPACE } from '../../bed/control-plane/kubevirt.js';
import { describeOnBed } from '../../bed/story/describe.js';

const GATE = 'PersistentIPs';
/**
 * What the controller needs to release claims while the gate is closed: VMs, VMIs, launchers and claims, and the gate with the namespace of KubeVirt.
 * NADs, namespaces and quotas are those of claims that it creates when the gate opens.
 */
const WATCHED = [
  ...[
    'configmaps',
    'ipamclaims',
    'kubevirts',
    'namespaces',
    'network-attachment-definitions',
    'pods',
    'resourcequotas',
  ],
  ...['virtualmachineinstances', 'virtualmachines'],
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

  /** The kinds of all watches since the process started, and how many requests there were for each. */
  function watchesOf({ requests }: ApiProxy): Map<string, number> {
    const found = new Map<string, number>();
    for (const request of requests.filter((each) => each.includes('watch=true'))) {
      const plural = /\/([^/?]+)\?/.exec(request)?.[1] ?? request;
      found.set(plural, (found.get(plural) ?? 0) + 1);
    }
    return found;
  }

  it('is followed while the controller runs: closed, VMs get no claims and claims are released; no watch begins or ends', async () => {
    const process = bed().controller;
    await withProxy({ bed: bed(), process, args: ['--feature-gates-from-kubevirt'] }, async ({ proxy }) => {
      await story().network('blue');
      try {
        await set(true);
        await story().createVm('first', { data: 'blue' }, { running: false });
        await story().waitForClaim('first.data');
        const open = watchesOf(proxy);
        expect([...open.keys()].sort()).to.deep.equal(WATCHED);

        await set(false);
        await story().createVm('second', { data: 'blue' }, { running: false });
        // a claim that is released after the VM was created shows that the controller has looked at it
        await story().deleteVm('first', 'Background');
        await story().claims.waitGone('first.data');
        expect(await story().claimNames()).to.deep.equal([]);
        expect(watchesOf(proxy)).to.deep.equal(open);
        const written = proxy.writes.filter((what) => what.includes('/second'));
        expect(written).to.deep.equal([]);

        await set(true);
        await story().waitForClaim('second.data');
        expect(watchesOf(proxy)).to.deep.equal(open);
      } finally {
        await set(false);
      }
    });
  });
});
