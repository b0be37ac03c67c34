import type { IPAMClaim } from '../../api/ipam-claim.js';
import { controllerOf } from '../../api/meta.js';
import type { Story } from '../../bed/story/story.js';
import { checkPool, showLeases } from './checks.js';
import type { Narrator } from './narrator.js';
import { CAPACITY, CLAIM, COOLDOWN_SECONDS, type Allocation, type DemoContext, SUBNETS, VM } from './context.js';
import { bareAddress } from '../../test/bare-address.js';

/** @returns the name of the CNI network whose addresses Holdfast allocates, and of its pool */
export async function defineNetworks(story: Story, narrator: Narrator): Promise<Pick<DemoContext, 'network' | 'pool'>> {
  narrator.chapter('An administrator creates two networks');
  const network = await story.addresses.createNetwork('blue', SUBNETS, { cooldownSeconds: COOLDOWN_SECONDS });
  await story.network('green', { persistent: false });
  narrator.show('NAD blue', '"allowPersistentIPs": true, "ipam": {"type": "holdfast", …}');
  for (const subnet of SUBNETS) narrator.show('  subnet', JSON.stringify(subnet));
  narrator.show('NAD green', '"allowPersistentIPs": false');
  const { metadata } = await story.addresses.waitForDerivedPool(network);
  return { network, pool: metadata.name };
}

export async function checkNewPool(context: DemoContext): Promise<void> {
  const counts = { capacity: CAPACITY, leased: 0, free: CAPACITY };
  await checkPool(context, 'the pool of blue has two IPv4 and sixteen IPv6 addresses, and all are free', { counts });
}

/** @returns the claim and the addresses that the VM must keep */
export async function createVm(context: DemoContext): Promise<Allocation> {
  const { story, narrator } = context;
  narrator.chapter(`A VM owner creates VM ${VM}: interface data on blue, interface guest on green`);
  await story.createVm(VM, { data: 'blue', guest: 'green' }, { running: false });
  const ips = await story.addresses.waitForIPs(CLAIM);
  const claim = await story.waitForClaim(CLAIM);
  showClaim(narrator, claim);
  const names = await story.claimNames();
  narrator.check(
    'the interface on the persistent network has a claim, and the other interface has none',
    names.join() === CLAIM,
  );
  narrator.check('the claim has an IPv4 and an IPv6 address of the pool before the VM first runs', isDualStack(ips));
  const leases = await checkLeases(context, claim, ips);
  const counts = { leased: 2, heldByStopped: 2, free: CAPACITY - 2 };
  await checkPool(context, 'the status of the pool counts these two addresses', { counts });
  return { claim, ips, leases };
}

function showClaim(narrator: Narrator, claim: IPAMClaim): void {
  const { namespace = '', name, uid = '', finalizers = [] } = claim.metadata;
  const owner = controllerOf(claim);
  narrator.show('IPAMClaim', `${namespace}/${name}  uid ${uid}`);
  narrator.show('  spec', JSON.stringify(claim.spec));
  narrator.show('  owner', `${owner?.kind ?? ''} ${owner?.name ?? ''}`);
  narrator.show('  finalizer', finalizers.join(' '));
  narrator.show('  status.ips', claim.status?.ips?.join(' ') ?? '');
}

function isDualStack([first = '', second = '', ...more]: readonly string[]): boolean {
  return /^10\.100\.0\.[12]\/30$/.test(first) && /^fd00:100::1[0-9a-f]\/64$/.test(second) && more.length === 0;
}

async function checkLeases(
  context: DemoContext,
  { metadata: { uid } }: IPAMClaim,
  ips: readonly string[],
): Promise<Allocation['leases']> {
  await showLeases(context);
  const leases = await context.story.addresses.leases();
  const owned = ips.every((ip) => leases.get(bareAddress(ip))?.spec.owner?.uid === uid);
  context.narrator.check(
    'there is one lease for each address of the claim, and no other lease',
    owned && leases.size === ips.length,
  );
  return new Map([...leases].map(([address, { metadata }]) => [address, metadata.uid ?? '']));
}
