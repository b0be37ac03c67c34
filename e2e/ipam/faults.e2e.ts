import { expect } from 'chai';
import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { type KubeObject, objectKey } from '../../api/meta.js';
import { POOL_FINALIZER } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, NAMESPACES, NETWORK_ATTACHMENT_DEFINITIONS } from '../../kube/resources.js';
import { crashAfterEachWrite } from '../../bed/faults/crash-after-write.js';
import { describeOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

describeOnBed('An ipam killed right after any of its writes', (story, bed) => {
  it('leaves nothing that the next start does not repair', async function () {
    this.timeout(10 * 60_000);
    // each test waits for addresses to cool down
    const args = ['--max-staleness=100ms'];
    await waitForEarlierTests(story());
    // a pool exists for minutes after its last NAD, and each new ipam writes to it again
    const otherPools = await poolNames(story());
    const counts = (_method: string, path: string) =>
      /\/(addressleases|addresspools|ipamclaims)\b/.test(path) &&
      !otherPools.has(/\/addresspools\/([^/?]+)/.exec(path)?.[1] ?? '');
    const crashes = await crashAfterEachWrite({ bed: bed(), process: bed().ipam, args, counts }, async (nth) => {
      await runAddresses(nth, story());
      for (const name of await poolNames(story())) otherPools.add(name);
    });
    expect(new Set(crashes.map(kindOf))).to.include.keys(
      'POST addresspools',
      'POST addressleases',
      'PATCH ipamclaims/status',
      'PATCH addressleases',
      'DELETE addressleases',
    );
    // 5 leases are created, released and deleted; one status for each claim and one for the change; the pool is created and deleted
    expect(crashes).to.have.length.of.at.least(15 + 3 + 3);
  });
});

interface Namespace extends KubeObject {
  status?: { conditions?: { type: string; status: string; message?: string }[] };
}

async function poolNames({ client }: Story): Promise<Set<string>> {
  return new Set((await client.list(ADDRESS_POOLS)).items.map(({ metadata }) => metadata.name));
}

/** Waits until nothing of earlier tests is left to delete, because that would count as a write of this test. */
async function waitForEarlierTests({ client }: Story): Promise<void> {
  const namesLeft = async () => {
    const [pools, leases] = await Promise.all([client.list(ADDRESS_POOLS), client.list(ADDRESS_LEASES)]);
    const ofPools = pools.items.filter((pool) => !waitsForAdds(pool)).map((pool) => whyLeft(pool, client));
    return [...(await Promise.all(ofPools)), ...leases.items.map(({ metadata }) => metadata.name)];
  };
  const isEmpty = (names: readonly string[]) => names.length === 0;
  await untilValue('pools and leases of earlier tests to be gone', namesLeft, isEmpty, { timeoutMs: 120_000 });
}

/** The last write of the pool is minutes away, and later with each restart of ipam. */
function waitsForAdds({ status }: AddressPool): boolean {
  return (
    status?.conditions?.some(({ type, reason }) => type === 'DeletionBlocked' && reason === 'AddsUnderWay') === true
  );
}

/** A pool with its status, and the remaining objects in the namespace of its NADs. */
async function whyLeft(pool: AddressPool, client: Client): Promise<string> {
  const { metadata, status } = pool;
  const said = (status?.conditions ?? []).map(({ type, message }) => `${type}: ${message}`);
  const own = [metadata.name, `deleted ${metadata.deletionTimestamp ?? 'never'}`, ...said];
  const name = nadNamespaceOf(pool);
  if (name === undefined) return own.join('; ');
  const nads = await client.list(NETWORK_ATTACHMENT_DEFINITIONS, { namespace: name });
  const namespace = await client.find<Namespace>(NAMESPACES, { name });
  const open = (namespace?.status?.conditions ?? [])
    .filter(({ status }) => status === 'True')
    .map(({ type, message = '' }) => `${type}: ${message}`);
  const end =
    namespace === undefined ? 'namespace gone' : `namespace ends ${namespace.metadata.deletionTimestamp ?? 'never'}`;
  return [...own, ...nads.items.map((nad) => `NAD ${objectKey(nad)}`), end, ...open].join('; ');
}

/** `PATCH ipamclaims/status` of a method and a path. */
function kindOf(write: string): string {
  const [, method = '', plural = '', subresource = ''] =
    /^(\S+) .*\/(addressleases|addresspools|ipamclaims)(?:\/[^/?]+)?(\/status)?/.exec(write) ?? [];
  return `${method} ${plural}${subresource}`;
}

/** Creates a network with two VMs, and deletes all of it. */
async function runAddresses(nth: number, story: Story): Promise<void> {
  const [nad, moves, stays] = [`net${String(nth)}`, `moves${String(nth)}`, `stays${String(nth)}`];
  const { addresses } = story;
  const prefix = `10.50.${String(nth)}`;
  const subnets = [
    { cidr: `${prefix}.0/24`, reserved: [`${prefix}.7-${prefix}.8`] },
    { cidr: `fd00:50:${String(nth)}::/120` },
  ];
  const network = await addresses.createNetwork(nad, subnets);
  const annotations = { 'network.kubevirt.io/addresses': JSON.stringify({ data: [`${prefix}.7`] }) };
  await story.createVm(moves, { data: nad }, { running: false, annotations });
  await story.createVm(stays, { data: nad }, { running: false });
  const [first = '', second = ''] = await addresses.waitForIPs(`${moves}.data`);
  const others = await addresses.waitForIPs(`${stays}.data`);
  expect(first).to.equal(`${prefix}.7/24`);

  await story.requestAddresses(moves, { data: [`${prefix}.8`] });
  const moved = [`${prefix}.8/24`, second];
  await addresses.waitForExactIPs(`${moves}.data`, moved);
  await addresses.waitHeld([...moved, ...others].map(bareAddress));
  await addresses.waitForExactIPs(`${stays}.data`, others);
  const { metadata } = await addresses.waitForDerivedPool(network);
  expect(metadata.finalizers).to.deep.equal([POOL_FINALIZER]);

  await story.deleteVm(moves, 'Background');
  await addresses.waitHeld(others.map(bareAddress));
  await story.waitForClaims([`${stays}.data`]);
  // 254 of IPv4, 255 of IPv6
  const counts = { capacity: 509, leased: 2, heldByStopped: 2, cooling: 0, free: 505, reserved: 2 };
  await addresses.waitForPool(metadata.name, `to count ${JSON.stringify(counts)}`, ({ status }) =>
    Object.entries(counts).every(([key, value]) => status?.[key as keyof typeof counts] === value),
  );
  await addresses.waitForExactIPs(`${stays}.data`, others);

  await story.client.delete(NETWORK_ATTACHMENT_DEFINITIONS, story.ref(nad));
  await story.deleteVm(stays, 'Background');
  await until('nothing to be left but a pool that is being deleted', async () => {
    const pool = await story.client.get(ADDRESS_POOLS, { name: metadata.name });
    return pool.metadata.deletionTimestamp !== undefined && (await addresses.leases()).size === 0;
  });
}
