import { expect } from 'chai';
import { PoolCondition } from '../../api/conditions.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { HoldfastProcess } from '../../bed/holdfast/process.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { describeStory, itOnBed } from '../../bed/story/describe.js';
import { rejectionMessage } from '../../bed/story/rejection.js';
import { until } from '../../bed/processes/wait.js';

const has = (type: PoolCondition, status: string) => (pool: AddressPool) =>
  pool.status?.conditions?.some((condition) => condition.type === type && condition.status === status) === true;
const messageOf = (pool: AddressPool, type: PoolCondition) =>
  pool.status?.conditions?.find((condition) => condition.type === type)?.message ?? '';

/** The number of reconciliations of claims. */
async function syncsOf(ipam: HoldfastProcess): Promise<number> {
  const counts = (await ipam.metrics()).matchAll(
    /^holdfast_sync_duration_seconds_count\{loop="ipam-claims".*\} (\d+)$/gm,
  );
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0);
}

describeStory('A pool derived from a NAD', (story) => {
  it('shows exact counts when nothing changes', async () => {
    const network = await story().addresses.createNetwork('blue', [
      { cidr: '10.30.0.0/24', reserved: ['10.30.0.250'] },
    ]);
    for (const name of ['vm1', 'vm2', 'vm3'])
      await story().createVm(name, { data: 'blue' }, { running: name === 'vm1' });
    await story().waitRunning('vm1');
    const { metadata } = await story().addresses.waitForDerivedPool(network);
    const counts = { capacity: 254, leased: 3, heldByStopped: 2, cooling: 0, free: 250, reserved: 1 };
    const pool = await story().addresses.waitForPool(
      metadata.name,
      `to count ${JSON.stringify(counts)}`,
      ({ status }) => Object.entries(counts).every(([key, value]) => status?.[key as keyof typeof counts] === value),
    );
    expect(has(PoolCondition.Ready, 'True')(pool)).to.equal(true);
  });

  it('understands the keys of whereabouts', async () => {
    const network = `${story().namespace}-blue`;
    const ipam = { type: 'holdfast', range: '10.30.1.0/24', range_start: '10.30.1.20', range_end: '10.30.1.21' };
    const config = { cniVersion: '0.3.1', name: network, type: 'macvlan', master: 'eth0', allowPersistentIPs: true };
    const plugins = [{ ...config, ipam: { ...ipam, exclude: ['10.30.1.20/32'], gateway: '10.30.1.1' } }];
    await story().network('blue', { config: { cniVersion: '0.3.1', name: network, plugins } });
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    await story().addresses.waitForExactIPs('vm1.data', ['10.30.1.21/24']);
  });

  it('serves all NADs of its namespace with its network name, and no NADs of other namespaces', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.30.2.0/30']);
    const other = await story().otherNamespace();
    const subnets = [{ cidr: '10.30.2.0/30' }];
    await story().network('blue', { namespace: other, network, subnets, ipam: { namespaces: [story().namespace] } });
    await story().createVm('vm1', { data: 'blue', more: `${other}/blue` }, { running: false });
    const both = [
      ...(await story().addresses.waitForIPs('vm1.data')),
      ...(await story().addresses.waitForIPs('vm1.more')),
    ];
    expect(both.sort()).to.deep.equal(['10.30.2.1/30', '10.30.2.2/30']);
  });

  it('follows the oldest of contradicting NADs, and the others are rejected', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.30.3.0/24']);
    await story().addresses.waitForDerivedPool(network);
    const refused = await rejectionMessage(story().network('second', { network, subnets: [{ cidr: '10.30.4.0/24' }] }));
    expect(refused).to.include('second').and.to.include('blue').and.to.include('10.30.4.0/24');
  });

  itOnBed('reports a contradicting NAD that passed without admission', async (bed) => {
    const network = await story().addresses.createNetwork('blue', ['10.30.5.0/24']);
    const { metadata } = await story().addresses.waitForDerivedPool(network);
    await bed.ipam.stop();
    try {
      await story().network('second', { network, subnets: [{ cidr: '10.30.6.0/24' }] });
    } finally {
      await bed.ipam.start();
    }
    const pool = await story().addresses.waitForPool(
      metadata.name,
      'to show it',
      has(PoolCondition.NetworksAgree, 'False'),
    );
    expect(messageOf(pool, PoolCondition.NetworksAgree)).to.include('second');
    expect(pool.spec.subnets.map(({ cidr }) => cidr)).to.deep.equal(['10.30.5.0/24']);
    await story().waitForEvent('second', 'NetworkAttachmentsDisagree');
  });

  it('reports another network that leases the same addresses on the same bridge, and still serves', async () => {
    const other = await story().otherNamespace();
    const config = (network: string) => ({
      ...{ cniVersion: '0.4.0', name: `${story().namespace}-${network}`, type: 'bridge', bridge: 'br-shared' },
      allowPersistentIPs: true,
      ipam: { type: 'holdfast', subnets: [{ cidr: '10.30.9.0/24' }], namespaces: ['*'] },
    });
    await story().network('red', { config: config('red') });
    await story().network('blue', { namespace: other, config: config('blue') });
    await story().createVm('vm1', { data: 'red', more: `${other}/blue` }, { running: false });
    const both = [
      ...(await story().addresses.waitForIPs('vm1.data')),
      ...(await story().addresses.waitForIPs('vm1.more')),
    ];
    expect(both).to.have.lengthOf(2);
    for (const [network, foreign] of [
      ['red', other],
      ['blue', story().namespace],
    ] as const) {
      const name = `${story().namespace}-${network}.${network === 'red' ? story().namespace : other}`;
      const pool = await story().addresses.waitForPool(name, 'to overlap', has(PoolCondition.OverlapsOnWire, 'True'));
      const message = messageOf(pool, PoolCondition.OverlapsOnWire);
      expect(message).to.include('bridge br-shared');
      expect(message).not.to.include(foreign);
      expect(has(PoolCondition.Ready, 'True')(pool)).to.equal(true);
    }
  });

  it('exists without its NAD while it has leases, and is deleted after the last one', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.30.7.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const mine = await story().addresses.waitForIPs('vm1.data');
    const { metadata } = await story().addresses.waitForDerivedPool(network);
    await story().client.delete(NETWORK_ATTACHMENT_DEFINITIONS, story().ref('blue'));
    await story().addresses.waitForExactIPs('vm1.data', mine);
    await story().deleteVm('vm1', 'Background');
    await story().addresses.waitHeld([]);
    const closing = await story().addresses.waitForPool(
      metadata.name,
      'to be deleted',
      has(PoolCondition.DeletionBlocked, 'True'),
    );
    expect(messageOf(closing, PoolCondition.DeletionBlocked)).to.include('until every CNI ADD that began before');
  });

  it('cannot shrink so that leased addresses are outside of its ranges', async () => {
    await story().addresses.createNetwork('blue', ['10.30.8.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const [mine = ''] = await story().addresses.waitForIPs('vm1.data');
    const smaller = story().addresses.createNetwork('blue', [
      { cidr: '10.30.8.0/24', exclude: [mine.replace('/24', '')] },
    ]);
    expect(await rejectionMessage(smaller))
      .to.include(mine.replace('/24', ''))
      .and.to.include('vm1.data');
    const broken = story().addresses.createNetwork('blue', [{ cidr: '10.30.8.0/24', gateway: '10.31.8.1' }]);
    expect(await rejectionMessage(broken))
      .to.include('gateway')
      .and.to.include('10.31.8.1');
  });

  it('ignores NADs that delegate to other plugins, even invalid ones', async () => {
    await story().network('odd', { config: '{"name": "holdfast", "ipam": 7, "type": ' });
    const config = { cniVersion: '0.3.1', name: 'x', type: 'bridge', ipam: { type: 'host-local', subnet: 'holdfast' } };
    await story().network('other', { config });
  });
});

describeStory('A pool of an administrator', (story) => {
  const spec = (cidr: string) => ({ network: `${story().namespace}-blue`, subnets: [{ cidr }] });

  it('serves NADs that name no subnets', async () => {
    await story().addresses.createNetwork('blue', []);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    expect((await story().waitForEvent('blue', 'AddressPoolMissing')).message).to.include(`${story().namespace}-blue`);
    await story().addresses.createPool(`${story().namespace}-admin`, spec('10.30.9.0/24'));
    const [mine = ''] = await story().addresses.waitForIPs('vm1.data');
    expect(mine).to.match(/^10\.30\.9\./);
  });

  it('takes precedence over the subnets of a NAD, and the derived pool says so', async () => {
    const admins = `${story().namespace}-admin`;
    await story().addresses.createPool(admins, spec('10.30.10.0/24'));
    const network = await story().addresses.createNetwork('blue', ['10.30.11.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    expect((await story().addresses.waitForIPs('vm1.data'))[0]).to.match(/^10\.30\.10\./);
    const { metadata } = await story().addresses.waitForDerivedPool(network);
    const derived = await story().addresses.waitForPool(
      metadata.name,
      'to say so',
      has(PoolCondition.Conflict, 'True'),
    );
    expect(messageOf(derived, PoolCondition.Conflict)).to.include(`AddressPool ${admins}`);
    expect(has(PoolCondition.Ready, 'False')(derived)).to.equal(true);
  });

  it('is rejected if it is the second one for the same users', async () => {
    const first = `${story().namespace}-admin`;
    await story().addresses.createPool(first, spec('10.30.12.0/24'));
    // known to the webhook that rejects
    await story().addresses.waitForPool(first, 'to serve', has(PoolCondition.Ready, 'True'));
    const second = story().addresses.createPool(`${story().namespace}-more`, spec('10.30.13.0/24'));
    expect(await rejectionMessage(second)).to.include(`${story().namespace}-admin`);
  });

  it('serves nothing if it is the second one and passed without admission', async () => {
    await story().addresses.createPool(`${story().namespace}-admin`, spec('10.30.14.0/24'));
    await story().addresses.createPool(
      `${story().namespace}-more`,
      spec('10.30.15.0/24'),
      await story().addresses.unvalidatedClient(),
    );
    const pool = await story().addresses.waitForPool(
      `${story().namespace}-more`,
      'to show it',
      has(PoolCondition.Conflict, 'True'),
    );
    expect(messageOf(pool, PoolCondition.Conflict)).to.include(`${story().namespace}-admin`);
    expect(has(PoolCondition.Ready, 'False')(pool)).to.equal(true);
  });

  it('is not deleted while it is in use, and is deleted when it is free', async () => {
    const name = `${story().namespace}-admin`;
    await story().addresses.createPool(name, spec('10.30.16.0/24'));
    await story().addresses.createNetwork('blue', []);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const mine = await story().addresses.waitForIPs('vm1.data');
    for (const propagationPolicy of ['Background', 'Foreground', 'Orphan'] as const) {
      const words = await rejectionMessage(story().client.delete(ADDRESS_POOLS, { name }, { propagationPolicy }));
      expect(words).to.include('vm1.data');
    }
    await story().addresses.waitForExactIPs('vm1.data', mine);
    await story().deleteVm('vm1', 'Background');
    await story().addresses.waitHeld([]);
  });

  it('is kept by its finalizer if its deletion passed without admission', async () => {
    const name = `${story().namespace}-admin`;
    await story().addresses.createPool(name, spec('10.30.17.0/24'));
    await story().addresses.createNetwork('blue', []);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const mine = await story().addresses.waitForIPs('vm1.data');
    const client = await story().addresses.unvalidatedClient();
    await client.delete(ADDRESS_POOLS, { name }, { propagationPolicy: 'Foreground' });
    const pool = await story().addresses.waitForPool(name, 'to say why', has(PoolCondition.DeletionBlocked, 'True'));
    expect(messageOf(pool, PoolCondition.DeletionBlocked)).to.include('vm1.data');
    await story().addresses.waitForExactIPs('vm1.data', mine);
    await story().deleteVm('vm1', 'Background');
    await until('the pool to be gone', async () => {
      return (await story().client.find(ADDRESS_POOLS, { name })) === undefined;
    });
  });

  it('is rejected with a list of all its errors', async () => {
    const bad = { network: 'x', subnets: [{ cidr: '10.30.18.0/24', ranges: ['10.30.18.20-10.30.18.10'] }] };
    expect(await rejectionMessage(story().addresses.createPool('bad', bad))).to.include('10.30.18.20-10.30.18.10');
    const hostBits = { network: 'x', subnets: [{ cidr: '10.30.18.7/24' }] };
    expect(await rejectionMessage(story().addresses.createPool('bad', hostBits))).to.include(
      '10.30.18.7/24 has host bits',
    );
  });
});

describeStory('A tenant with all rights in the namespace', (story) => {
  it('cannot write addresses into a claim of Holdfast, and cannot delete or create a lease', async () => {
    await story().addresses.createNetwork('blue', ['10.30.19.0/24']);
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    const mine = await story().addresses.waitForIPs('vm1.data');
    const tenant = await story().tenant();
    const rejection = await until('the policy to know the new pool', () =>
      tenant.statusRejection('vm1.data', { ips: ['10.30.19.66/24'] }),
    );
    expect(rejection).to.include('only Holdfast writes the status');
    const [lease] = [...(await story().addresses.leases()).values()];
    expect(await tenant.leaseDeletionRejection(lease!.metadata.name)).to.include('forbidden');
    await story().addresses.waitForExactIPs('vm1.data', mine);
    expect((await story().client.get(ADDRESS_LEASES, { name: lease!.metadata.name })).metadata.uid).to.equal(
      lease!.metadata.uid,
    );
  });
});

describeStory('While the feature gate PersistentIPs is off', (story) => {
  itOnBed('no address is allocated or freed', async (bed) => {
    const network = await story().addresses.createNetwork('blue', ['10.30.20.0/24']);
    await story().claims.createPlain('before', network);
    const [mine = ''] = await story().addresses.waitForIPs('before');
    await bed.ipam.stop();
    await bed.ipam.start({ args: ['--feature-gates=PersistentIPs=false'] });
    try {
      const looked = await syncsOf(bed.ipam);
      await story().claims.createPlain('after', network);
      await story().claims.remove('before');
      await until('ipam to have looked at both', async () => (await syncsOf(bed.ipam)) >= looked + 2);
      expect((await story().waitForClaim('after')).status).to.equal(undefined);
      expect(await story().addresses.heldAddresses()).to.deep.equal([mine.replace('/24', '')]);
    } finally {
      await bed.ipam.stop();
      await bed.ipam.start();
    }
    await story().addresses.waitForIPs('after');
    await story().addresses.waitHeld((await story().addresses.waitForIPs('after')).map((ip) => ip.replace('/24', '')));
  });
});
