import type { IPAMClaim } from '../../api/ipam-claim.js';
import { IPS_ALLOCATED } from '../../api/names.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { HOLDFAST_NAMESPACE } from '../../bed/holdfast/install.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import type { Story } from '../../bed/story/story.js';
import { formatAddress, parseAddress } from '../../addressing/address/address.js';
import { Client } from '../../kube/client.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../../kube/resources.js';
import { Transport } from '../../kube/transport/transport.js';
import { ClaimCounter } from '../claims.js';
import { runLoad } from '../load.js';
import type { Figure } from '../report.js';
import { usageOf } from '../usage.js';

const CLAIMS = 2_000;
/** The number of ipam's workers for claims. */
const CONCURRENCY = 64;
/** Percentage of a /16 that is leased before the claims are created. */
const UTILISATIONS = [0, 50, 95];
const SLASH_16 = 65_534;
/** The default flags, because the test bed lets ipam search for leaks every second. */
export const AS_SHIPPED = ['--max-staleness=30s', '--collect-after=60s', '--unhonoured-after=60s'];

/** Allocates addresses to 2,000 claims at once, and restarts ipam, with more and more leases in the cluster. */
export async function benchAddresses(bed: BedWithHoldfast, story: Story): Promise<Figure[]> {
  const identity = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-ipam');
  const ipam = new Client(new Transport(await loadCredentials({ kubeconfig: identity })));
  const world: AddressBench = { bed, story, ipam, filled: new Map() };
  const spaceOf = (percent: number) => `${story.namespace}-full${String(percent)}`;
  const figures: Figure[] = [...(await measureRestart(world))];
  await fillAddressSpace(world, { space: spaceOf(50), first: '10.65.0.1', upTo: 10_000 });
  figures.push(...(await measureRestart(world)));
  for (const [index, percent] of UTILISATIONS.entries()) {
    const subnet = `10.${String(64 + index)}.0`;
    await fillAddressSpace(world, { space: spaceOf(percent), first: `${subnet}.1`, upTo: (SLASH_16 * percent) / 100 });
    const options = { nad: `full${String(percent)}`, subnet: `${subnet}.0/16`, name: `a /16 at ${String(percent)} %` };
    figures.push(...(await measureAllocationRate(world, options)));
  }
  await fillAddressSpace(world, { space: 'crowd', first: '11.0.0.1', upTo: 100_000 - leasesOf(world) });
  const crowded = { nad: 'crowded', subnet: '10.70.0.0/16', name: '100,000 leases elsewhere' };
  figures.push(...(await measureAllocationRate(world, crowded)), ...(await measureRestart(world)));
  await fillAddressSpace(world, { space: 'more', first: '12.0.0.1', upTo: 100_000 });
  figures.push(...(await measureRestart(world)));
  await ipam.transport.close();
  await bed.ipam.stop();
  await bed.ipam.start();
  return figures;
}

interface AddressBench {
  bed: BedWithHoldfast;
  story: Story;
  /** A client with ipam's identity, so that the baseline passes the same admission. */
  ipam: Client;
  filled: Map<string, number>;
}

function leasesOf({ filled }: AddressBench): number {
  return [...filled.values()].reduce((sum, count) => sum + count, 0);
}

/** Measures the time from the creation of the NAD until the last claim has its address. */
async function measureAllocationRate(
  world: AddressBench,
  { nad, subnet, name }: { nad: string; subnet: string; name: string },
): Promise<Figure[]> {
  const { bed, story } = world;
  const network = `${story.namespace}-${nad}`;
  const names = Array.from({ length: CLAIMS }, (_, n) => `${nad}-${String(n)}`);
  const create = (n: number) => story.claims.createPlain(names[n]!, network).then(() => undefined);
  await runLoad(create, { count: CLAIMS, concurrency: 16 });
  const isServed = ({ spec, status }: IPAMClaim) => spec.network === network && (status?.ips?.length ?? 0) > 0;
  const served = new ClaimCounter(story, isServed);
  await served.reached(0);
  const before = await usageOf(bed.ipam.pid);
  const began = performance.now();
  await story.addresses.createNetwork(nad, [subnet]);
  await served.reached(CLAIMS);
  const seconds = (performance.now() - began) / 1000;
  const cpu = (await usageOf(bed.ipam.pid)).cpuSeconds - before.cpuSeconds;
  await served.stop();
  const floor = await measureBareWrites(world, network, names);
  return [
    { name: `addresses: ${String(CLAIMS)} claims, ${name}`, value: CLAIMS / seconds, unit: '/s' },
    { name: `addresses: bare lease + status, floor, ${name}`, value: CLAIMS / floor, unit: '/s' },
    { name: `addresses: of the floor, ${name}`, value: floor / seconds, unit: '', target: { atLeast: 0.9 } },
    { name: `addresses: CPU a claim, ${name}`, value: (cpu * 1000) / CLAIMS, unit: 'ms' },
  ];
}

/** Measures the baseline: as many creates of leases and patches of statuses, by the bare client, while ipam is stopped. */
async function measureBareWrites({ bed, story, ipam }: AddressBench, network: string, names: string[]) {
  await bed.ipam.stop();
  const first = parseAddress('15.0.0.1').value;
  const condition = {
    type: IPS_ALLOCATED,
    status: 'True' as const,
    reason: 'SuccessfulAllocation',
    message: 'the floor of a bench',
    lastTransitionTime: new Date(0).toISOString(),
  };
  const write = async (n: number) => {
    const address = formatAddress({ family: 4, value: first + BigInt(n) });
    const owner = { kind: 'IPAMClaim' as const, namespace: story.namespace, name: names[n]!, uid: `floor-${n}` };
    await ipam.create(ADDRESS_LEASES, leaseNamed(`${network}-floor`, address, { pool: network, owner }));
    const body = { status: { ips: [`${address}/8`], conditions: [condition] } };
    await ipam.patch(IPAM_CLAIMS, story.ref(names[n]!), { type: 'merge', body }, { subresource: 'status' });
  };
  const { seconds } = await runLoad(write, { count: CLAIMS, concurrency: CONCURRENCY });
  // otherwise ipam would collect the leases during the next measurement
  const remove = async (n: number) => {
    const address = formatAddress({ family: 4, value: first + BigInt(n) });
    const { name } = leaseNamed(`${network}-floor`, address, { pool: network }).metadata;
    await ipam.delete(ADDRESS_LEASES, { name });
    await story.claims.remove(names[n]!);
  };
  await runLoad(remove, { count: CLAIMS, concurrency: CONCURRENCY });
  await bed.ipam.start({ args: AS_SHIPPED });
  return seconds;
}

/** Creates reservations, which need no work. */
async function fillAddressSpace(
  { ipam, filled }: AddressBench,
  { space, first, upTo }: { space: string; first: string; upTo: number },
): Promise<void> {
  const there = filled.get(space) ?? 0;
  const from = parseAddress(first).value + BigInt(there);
  const create = async (n: number) => {
    const address = formatAddress({ family: 4, value: from + BigInt(n) });
    await ipam.create(ADDRESS_LEASES, leaseNamed(space, address, { pool: space }));
  };
  await runLoad(create, { count: Math.max(0, Math.floor(upTo) - there), concurrency: CONCURRENCY });
  filled.set(space, Math.max(there, Math.floor(upTo)));
  process.stderr.write(`  ${String(filled.get(space))} leases in ${space}\n`);
}

/** Measures the time from the start of ipam until it is ready, and its CPU and memory. */
async function measureRestart(world: AddressBench): Promise<Figure[]> {
  const { bed } = world;
  const leases = leasesOf(world);
  await bed.ipam.stop();
  const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-ipam');
  const began = performance.now();
  await bed.ipam.start({ kubeconfig, args: AS_SHIPPED });
  const seconds = (performance.now() - began) / 1000;
  const usage = await usageOf(bed.ipam.pid);
  const name = `ipam: with ${String(leases)} leases`;
  const isTarget = leases === 100_000;
  return [
    { name: `${name}, ready in`, value: seconds, unit: 's', ...(isTarget && { target: { atMost: 15 } }) },
    { name: `${name}, CPU to ready`, value: usage.cpuSeconds, unit: 's' },
    { name: `${name}, RSS`, value: usage.rssMiB, unit: 'MiB', ...(isTarget && { target: { atMost: 300 } }) },
    { name: `${name}, peak RSS`, value: usage.peakMiB, unit: 'MiB' },
  ];
}
