import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import { PoolCondition } from '../../api/conditions.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { EventReason } from '../../api/event-reasons.js';
import { AllocationReason, CLAIM_REQUESTED_ADDRESSES, LEASE_OWNER_NAMESPACE } from '../../api/names.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../../kube/resources.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import { describeOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

const { Internal, InvalidRequest, PoolNotFound, Conflict } = AllocationReason;

describeOnBed('Invalid objects', (story, bed) => {
  it('of kind IPAMClaim get an error in their conditions, and other claims are served', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.60.0.0/24']);
    await story().addresses.waitForDerivedPool(network);
    await claimWith(story(), { name: 'no-json', network, request: '10.60.0.7' });
    await claimWith(story(), { name: 'no-address', network, request: '["10.60.0.777"]' });
    await claimWith(story(), { name: 'two', network, request: '["10.60.0.7","10.60.0.8"]' });
    await story().claims.createRestored('status', network, ['10.60.0']);
    await story().claims.createPlain('good', network);
    for (const [name, reason, words] of [
      ['no-json', InvalidRequest, 'is not a list of addresses'],
      ['no-address', InvalidRequest, '10.60.0.777'],
      ['two', InvalidRequest, 'second IPv4 address'],
      ['status', Internal, 'status.ips'],
    ] as const) {
      const { message } = await story().addresses.waitForRefusal(name, reason);
      expect(message).to.include(words);
      expect((await story().waitForEvent(name, EventReason.AddressesNotAllocated)).message).to.include(words);
    }
    const good = (await story().addresses.waitForIPs('good')).map(bareAddress);
    expect(await story().addresses.heldAddresses()).to.deep.equal(good);
    // and it is served as soon as it is valid
    const body = { metadata: { annotations: { [CLAIM_REQUESTED_ADDRESSES]: '["10.60.0.7"]' } } };
    await story().client.patch(IPAM_CLAIMS, story().ref('no-json'), { type: 'merge', body });
    await story().addresses.waitForExactIPs('no-json', ['10.60.0.7/24']);
  });

  it('that are networks and pools without admission are reported on users, NADs and pools, and others are served', async () => {
    const [bad, good] = [`${story().namespace}-bad-pool`, `${story().namespace}-good-pool`];
    const network = (nad: string) => `${story().namespace}-${nad}`;
    const backwards = [{ cidr: '10.60.1.0/24', ranges: ['10.60.1.20-10.60.1.10'] }];
    const ipam = await story().addresses.unvalidatedClient();
    await bed().ipam.stop();
    try {
      const delegation = { type: 'holdfast', subnets: 'all of them' };
      await story().network('odd', { config: { ...config(network('odd')), ipam: delegation } });
      await story().addresses.createNetwork('bad', []);
      await story().addresses.createPool(bad, { network: network('bad'), subnets: backwards }, ipam);
      await story().addresses.createNetwork('blue', []);
      await story().addresses.createPool(`${bad}-of-blue`, { network: network('blue'), subnets: backwards }, ipam);
      const subnets = [{ cidr: '10.60.2.0/24' }];
      await story().addresses.createPool(good, { network: network('blue'), subnets }, ipam);
      for (const nad of ['odd', 'bad', 'blue']) await story().createVm(nad, { data: nad }, { running: false });
      await Promise.all(['odd', 'bad', 'blue'].map((vm) => story().waitForClaim(`${vm}.data`)));
    } finally {
      await bed().ipam.start();
    }
    expect((await story().addresses.waitForIPs('blue.data'))[0]).to.match(/^10\.60\.2\.\d+\/24$/);
    expect((await story().addresses.waitForRefusal('odd.data', PoolNotFound)).message).to.include('ipam.subnets');
    expect((await story().waitForEvent('odd', EventReason.NetworkInvalid)).message).to.include('ipam.subnets');
    expect((await story().addresses.waitForRefusal('bad.data', PoolNotFound)).message).to.include(
      '10.60.1.20-10.60.1.10',
    );
    for (const name of [bad, `${bad}-of-blue`]) {
      const pool = await story().addresses.waitForPool(name, 'to say why', ({ status }) => status !== undefined);
      const ready = pool.status?.conditions?.find(({ type }) => type === PoolCondition.Ready);
      expect(ready).to.include({ status: 'False', reason: 'InvalidSpec' });
      expect(ready?.message).to.include('10.60.1.20-10.60.1.10');
    }
  });

  it('of kind AddressLease are ignored if the name is wrong, and collected otherwise', async () => {
    // the network is not a valid object name: its leases have a hash in their names that the API server cannot check
    const network = `${story().namespace}_Blue`;
    await story().network('blue', { network, subnets: [{ cidr: '10.60.3.0/24' }] });
    const ghost: LeaseOwner = { kind: 'IPAMClaim', namespace: 'no-such-namespace', name: 'ghost', uid: 'no-such-uid' };
    const misnamed = 'wrong-0123456789abcdef.10-60-3-7';
    const good = (address: string, owner = ghost) => leaseNamed(network, address, { pool: 'no-such-pool', owner });
    await bed().ipam.stop();
    try {
      await putLease(story(), good('10.60.3.7'), { name: misnamed });
      // labels only serve selection; the spec decides
      await putLease(story(), good('10.60.3.8'), { labels: { [LEASE_OWNER_NAMESPACE]: story().namespace } });
      await putLease(story(), good('10.60.3.9', { ...ghost, kind: 'Pod' }), { labels: {} });
      for (const last of ['7', '8', '9', '10']) {
        await claimWith(story(), { name: `asks-${last}`, network, request: `["10.60.3.${last}"]` });
      }
    } finally {
      await bed().ipam.start();
    }
    await story().addresses.waitForExactIPs('asks-7', ['10.60.3.7/24']);
    await story().addresses.waitForExactIPs('asks-10', ['10.60.3.10/24']);
    await story().waitForEvent('asks-8', EventReason.AddressesNotAllocated, new RegExp(Conflict));
    await story().waitForEvent('asks-9', EventReason.AddressesNotAllocated, /in another namespace/);
    await story().addresses.waitForExactIPs('asks-8', ['10.60.3.8/24']);
    await story().addresses.waitForExactIPs('asks-9', ['10.60.3.9/24']);
    await until('the log to name the lease', async () => (await logOf(bed())).includes(misnamed));
    // its purpose is unknown, so it is left to its creator
    await story().client.delete(ADDRESS_LEASES, { name: misnamed });
  });
});

function config(network: string): object {
  return { cniVersion: '0.4.0', name: network, type: 'bridge', bridge: 'br0', allowPersistentIPs: true };
}

async function claimWith(
  story: Story,
  { name, network, request }: { name: string; network: string; request: string },
): Promise<IPAMClaim> {
  const metadata = { ...story.ref(name), annotations: { [CLAIM_REQUESTED_ADDRESSES]: request } };
  return story.client.create(IPAM_CLAIMS, { metadata, spec: { network, interface: '' } });
}

async function putLease(
  { client }: Story,
  lease: AddressLease,
  metadata: { name?: string; labels?: Record<string, string> },
): Promise<void> {
  await client.create(ADDRESS_LEASES, { ...lease, metadata: { ...lease.metadata, ...metadata } });
}

function logOf({ logDir }: BedWithHoldfast): Promise<string> {
  return readFile(join(logDir, 'holdfast-ipam.log'), 'utf8');
}
