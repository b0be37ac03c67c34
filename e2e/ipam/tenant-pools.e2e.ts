import { expect } from 'chai';
import { PoolCondition } from '../../api/conditions.js';
import { ADDRESS_POOLS, IPAM_CLAIMS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { describeStory, itOnBed } from '../../bed/story/describe.js';
import { waitForEvent } from '../../bed/story/events.js';
import { rejectionMessage } from '../../bed/story/rejection.js';
import { vmManifest } from '../../bed/story/vms/vm.js';
import { untilValue } from '../../bed/processes/wait.js';

/** More interfaces than the limit of claims of a VM, and than the addresses of the pool. */
const MANY = 40;
/** The default of --max-claims-per-vm. */
const MOST = 32;

describeStory('A tenant without rights to pools', (story) => {
  it('cannot empty a pool of another namespace with the claims of a stopped VM', async () => {
    const victim = await story().otherNamespace();
    const network = `${victim}-blue`;
    await story().network('blue', { namespace: victim, network, subnets: [{ cidr: '10.31.0.0/28' }] });
    const tenant = await story().tenant();
    const networks = Object.fromEntries(Array.from({ length: MANY }, (_, index) => [`n${index}`, `${victim}/blue`]));
    await tenant.createVm('greedy', networks);
    expect((await story().waitForEvent('greedy', 'IPAMClaimLimitReached')).message).to.include('and 7 more');
    expect((await story().addresses.waitForRefusal('greedy.n0', 'PoolNotFound')).message)
      .to.include(`does not serve namespace ${story().namespace}`)
      .and.include('"namespaces"');
    const { client } = story();
    const manifest = vmManifest({ name: 'vm1', namespace: victim, networks: { data: 'blue' }, running: false });
    await client.create(VIRTUAL_MACHINES, manifest);
    await untilValue(
      'the VM of the other namespace to have an address',
      () => client.find(IPAM_CLAIMS, { namespace: victim, name: 'vm1.data' }),
      (claim) => claim?.status?.ips?.length === 1,
    );
    expect(await story().addresses.heldAddresses()).to.deep.equal([]);
    await story().waitForClaims(
      Object.keys(networks)
        .slice(0, MOST)
        .map((each) => `greedy.${each}`),
    );
  });

  it('keeps the address of a restarting VM when the pool no longer serves the namespace', async () => {
    const owner = await story().otherNamespace();
    const subnets = [{ cidr: '10.31.4.0/28' }];
    const nad = { namespace: owner, network: `${owner}-blue`, subnets };
    await story().network('blue', { ...nad, ipam: { namespaces: ['*'] } });
    await story().runVm('vm1', { data: `${owner}/blue` });
    const mine = await story().addresses.waitForIPs('vm1.data');
    await story().network('blue', nad);
    await waitForEvent(story().client, { namespace: owner, name: 'blue' }, 'NamespacesNotServed');
    await story().restart('vm1');
    await story().addresses.waitForExactIPs('vm1.data', mine);
    await story().createVm('vm2', { data: `${owner}/blue` }, { running: false });
    await story().addresses.waitForRefusal('vm2.data', 'PoolNotFound');
  });

  it('cannot have a pool in an address space that an administrator reserves for others', async () => {
    const addressSpace = `${story().namespace}-kept`;
    const subnets = [{ cidr: '10.31.1.0/24' }];
    const kept = { network: addressSpace, addressSpace, subnets, namespaces: ['somebody-else'] };
    await story().addresses.createPool(addressSpace, kept);
    await story().addresses.waitForPool(
      addressSpace,
      'to serve',
      ({ status }) => status?.conditions?.length !== undefined,
    );
    const tenant = await story().tenant();
    const options = { network: `${story().namespace}-blue`, subnets, ipam: { addressSpace } };
    expect(await rejectionMessage(tenant.putNetwork('blue', options)))
      .to.include(`"${addressSpace}"`)
      .and.include('ask the administrator');
    const sameName = { network: addressSpace, subnets };
    expect(await rejectionMessage(tenant.putNetwork('red', sameName)))
      .to.include(`does not serve namespace ${story().namespace}`)
      .and.not.include('somebody-else');
  });

  itOnBed('gets no address in such an address space and no capacity on nodes while no webhook answers', async (bed) => {
    const { namespace, addresses, client } = story();
    const addressSpace = `${namespace}-kept`;
    const subnets = [{ cidr: '10.31.2.0/24' }];
    await addresses.createPool(addressSpace, {
      network: addressSpace,
      addressSpace,
      subnets,
      namespaces: ['somebody-else'],
    });
    const tenant = await story().tenant();
    const [blue, red] = [`${namespace}-blue`, `${namespace}-red`];
    await bed.ipam.stop();
    try {
      await tenant.putNetwork('blue', { network: blue, subnets, ipam: { addressSpace } });
      await tenant.putNetwork('red', {
        network: red,
        subnets: [{ cidr: '10.31.3.0/24' }],
        ipam: { publishCapacity: true, stickyMAC: { ttl: '9000h' } },
      });
    } finally {
      await bed.ipam.start();
    }
    await waitForEvent(client, { namespace, name: 'blue' }, 'NetworkAttachmentNotPermitted', /addressSpace/);
    await tenant.createVm('vm1', { data: 'blue' });
    await addresses.waitForRefusal('vm1.data', 'PoolNotFound');
    expect(await client.find(ADDRESS_POOLS, { name: `${blue}.${namespace}` })).to.equal(undefined);
    const pool = await addresses.waitForPool(`${red}.${namespace}`, 'to say what it lacks', ({ status }) => {
      return status?.conditions?.some(({ type }) => type === PoolCondition.NotPermitted) === true;
    });
    expect(pool.spec).to.not.have.property('publishCapacity');
    expect(pool.spec.stickyMAC).to.deep.equal({ ttl: '168h' });
  });
});
