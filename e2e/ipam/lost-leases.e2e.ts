import { expect } from 'chai';
import type { AddressLease, LeaseOwner } from '../../api/address-lease.js';
import { AllocationReason } from '../../api/names.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { describeOnBed } from '../../bed/story/describe.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import type { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

const CLAIMS = Array.from({ length: 20 }, (_, index) => `claim${String(index)}`);

describeOnBed('The leases of twenty claims that were deleted by hand', (story, bed) => {
  it('are created again at once and unchanged, and no claim changes', async () => {
    const { before, claims } = await twentyClaims(story(), '10.61.0.0/27');
    await deleteLeases(story(), before);
    await allBack(story(), before);
    expect(await readClaims(story())).to.deep.equal(claims);
  });

  it('are created again when ipam starts, although other claims were created meanwhile', async () => {
    const { before, claims, network } = await twentyClaims(story(), '10.61.1.0/27');
    await bed().ipam.kill();
    try {
      await deleteLeases(story(), before);
      // with the ten free ones this is the whole pool
      for (let index = 0; index < 10; index++) await story().claims.createPlain(`late${String(index)}`, network);
    } finally {
      await bed().ipam.start();
    }
    await allBack(story(), before);
    expect(await readClaims(story())).to.deep.equal(claims);
    for (let index = 0; index < 10; index++) await story().addresses.waitForIPs(`late${String(index)}`);
  });
});

describeOnBed('Leases with another owner for the addresses of existing claims', (story, bed) => {
  it('are reported as conflicts, and each claim gets its address back when the other owner is proved gone', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.61.2.0/24']);
    const pool = (await story().addresses.waitForDerivedPool(network)).metadata.name;
    await story().createVm('vm1', { data: 'blue' }, { running: false });
    await story().createVm('vm2', { data: 'blue' }, { running: false });
    const [namesake, stranger] = [
      await story().addresses.waitForIPs('vm1.data'),
      await story().addresses.waitForIPs('vm2.data'),
    ];
    await bed().ipam.stop();
    try {
      const owner: LeaseOwner = {
        kind: 'IPAMClaim',
        namespace: story().namespace,
        name: 'vm1.data',
        uid: 'no-such-uid',
      };
      await replaceLease(story(), { network, pool, ips: namesake, owner });
      await replaceLease(story(), { network, pool, ips: stranger, owner: { ...owner, name: 'ghost' } });
    } finally {
      await bed().ipam.start();
    }
    const { message } = await story().addresses.waitForRefusal('vm2.data', AllocationReason.Conflict);
    // held by the missing owner, or cooling down after it was proved gone
    expect(message).to.include(bareAddress(stranger[0] ?? ''));
    expect((await story().waitForClaim('vm2.data')).status?.ips).to.deep.equal(stranger);
    for (const [name, ips] of [
      ['vm1.data', namesake],
      ['vm2.data', stranger],
    ] as const) {
      const { uid } = (await story().waitForClaim(name)).metadata;
      await until(`${name} to have its lease again`, async () => {
        const lease = (await story().addresses.leases()).get(bareAddress(ips[0] ?? ''));
        return lease !== undefined && lease.spec.owner?.uid === uid && lease.spec.releasedAt === undefined;
      });
      await story().addresses.waitForExactIPs(name, ips);
    }
  });
});

async function twentyClaims(story: Story, cidr: string) {
  const network = await story.addresses.createNetwork('blue', [cidr]);
  await Promise.all(CLAIMS.map((name) => story.claims.createPlain(name, network)));
  for (const name of CLAIMS) await story.addresses.waitForIPs(name);
  const before = [...(await story.addresses.leases()).values()];
  expect(before).to.have.length(CLAIMS.length);
  return { network, before, claims: await readClaims(story) };
}

/** The statuses of the claims, and the number of their writes. */
async function readClaims(story: Story) {
  const claims = await Promise.all(CLAIMS.map((name) => story.waitForClaim(name)));
  return claims.map(({ metadata, status }) => ({ version: metadata.resourceVersion, status }));
}

async function deleteLeases({ client }: Story, leases: readonly AddressLease[]): Promise<void> {
  await Promise.all(leases.map(({ metadata }) => client.delete(ADDRESS_LEASES, { name: metadata.name })));
}

/** Waits until each lease exists again: another object with the same address and owner. */
async function allBack(story: Story, before: readonly AddressLease[]): Promise<void> {
  const uids = new Set(before.map(({ metadata }) => metadata.uid));
  const wanted = before.map(said).sort();
  await untilValue(
    'all leases to be back',
    async () => {
      const leases = [...(await story.addresses.leases()).values()];
      return leases.filter(({ metadata }) => !uids.has(metadata.uid)).map(said);
    },
    (back) => wanted.every((one) => back.includes(one)),
  );
}

function said({ metadata, spec }: AddressLease): string {
  return `${metadata.name} ${spec.pool} ${spec.owner?.name ?? ''} ${spec.owner?.uid ?? ''} ${spec.releasedAt ?? ''}`;
}

async function replaceLease(
  { client }: Story,
  { network, pool, ips, owner }: { network: string; pool: string; ips: readonly string[]; owner: LeaseOwner },
): Promise<void> {
  const lease = leaseNamed(network, bareAddress(ips[0] ?? ''), { pool, owner });
  await client.delete(ADDRESS_LEASES, { name: lease.metadata.name });
  await client.create(ADDRESS_LEASES, lease);
}
