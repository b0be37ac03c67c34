import { expect } from 'chai';
import { DEFAULT_NETWORK_ANNOTATION, NETWORKS_ANNOTATION } from '../../api/names.js';
import { ADDRESS_LEASES, ADDRESS_POOLS } from '../../kube/resources.js';
import { environment } from '../../bed/story/hooks.js';
import { describeStory } from '../../bed/story/describe.js';
import { waitForEvent } from '../../bed/story/events.js';
import { bridgeOf } from '../../bed/story/networks.js';
import { Tenant } from '../../bed/story/tenant.js';
import { until } from '../../bed/processes/wait.js';
import { itWithWireStory } from '../../bed/story/wire/wire-story.js';

const SUBNET = '10.79.0.0/24';

describeStory('A tenant who may only create pods', (story) => {
  itWithWireStory(
    'gets no address of another address space on the segment of a VM, however the pod names the NAD',
    story,
    async () => {
      const network = await story().addresses.createNetwork('blue', [SUBNET]);
      await story().runVm('vm1', { data: 'blue' });
      // the same network and addresses in another address space, on another segment
      const [namespace, addressSpace] = [await story().otherNamespace(), `${network}-other`];
      const ipam = { type: 'holdfast', subnets: [{ cidr: SUBNET }], addressSpace };
      const config = { cniVersion: '1.0.0', name: network, type: 'bridge', bridge: bridgeOf(addressSpace), ipam };
      await story().network('mine', { namespace, config });
      const { client } = story();
      await until('both pools to be there', async () => {
        const { items } = await client.list(ADDRESS_POOLS);
        return items.filter(({ spec }) => spec.network === network).length === 2;
      });
      const tenant = await Tenant.createPodCreator(environment(), namespace);
      const blue = { name: 'blue', namespace: story().namespace };
      const ways = {
        alias: { [NETWORKS_ANNOTATION]: JSON.stringify([{ ...blue, interfaceRequest: 'x1' }]) },
        default: { [DEFAULT_NETWORK_ANNOTATION]: `${blue.namespace}/${blue.name}` },
      };
      try {
        for (const [name, annotations] of Object.entries(ways)) await tenant.createPod(name, annotations);
        for (const name of Object.keys(ways)) {
          await waitForEvent(client, { namespace, name }, 'FailedCreatePodSandBox', /does not serve namespace/);
        }
      } finally {
        await tenant.close();
      }
      const { items } = await client.list(ADDRESS_LEASES);
      const leased = items.filter(({ metadata }) => metadata.name.startsWith(`${addressSpace}.`));
      expect(leased.map(({ spec }) => `${spec.address} for ${spec.owner?.name}`)).to.deep.equal([]);
    },
  );
});
