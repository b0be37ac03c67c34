import { expect } from 'chai';
import { findFreePorts } from './bed/ports.js';
import type { BedWithHoldfast } from './environment.js';
import { whileObserved } from './faults/while-observed.js';
import { HoldfastProcess } from './holdfast/process.js';
import { describeOnBed } from './story/describe.js';
import type { Story } from './story/story.js';
import { until } from './bed/wait.js';

/** The duration of a Lease, the interval of candidates, and a reserve for a busy machine. */
const TAKEOVER_MS = 15_000 + 2_000 + 5_000;

describeOnBed('Two replicas of ipam', (story, bed) => {
  it('work one at a time, the other takes over when the leader is killed, and no address is leased twice', async () => {
    await withSecondIpam(bed(), ['--leader-elect'], async (replicas) => {
      const network = await story().addresses.createNetwork('blue', ['10.52.0.0/26']);
      await whileObserved({ client: bed().client, space: network, namespace: story().namespace }, async () => {
        const leader = await leaderOf(replicas);
        const follower = replicas.find((other) => other !== leader)!;
        await claim(story(), network, ['a1', 'a2', 'a3']);
        const before = await addressesOf(story(), ['a1', 'a2', 'a3']);
        expect(await leads(follower)).to.equal(false);

        await leader.kill();
        await claim(story(), network, ['b1', 'b2', 'b3']);
        await story().claims.remove('a1');
        await until('the other one to lead', () => leads(follower), { timeoutMs: TAKEOVER_MS });
        expect(await addressesOf(story(), ['a2', 'a3'])).to.deep.equal(before.slice(1));
        await addressesOf(story(), ['b1', 'b2', 'b3']);
      });
    });
  });

  it('lease no address twice if both work at once, because the lease itself is the lock', async () => {
    await withSecondIpam(bed(), ['--leader-elect=false'], async (replicas) => {
      // as many addresses as claims, so that both replicas compete for each of them
      const network = await story().addresses.createNetwork('blue', ['10.52.1.0/27']);
      await whileObserved({ client: bed().client, space: network, namespace: story().namespace }, async (observer) => {
        for (const replica of replicas) expect(await leads(replica)).to.equal(true);
        const first = names('first', 30);
        await claim(story(), network, first);
        const all = await addressesOf(story(), first);
        expect(new Set(all.flat()).size).to.equal(30);
        await Promise.all(first.slice(0, 10).map((name) => story().claims.remove(name)));
        const second = names('second', 10);
        await claim(story(), network, second);
        await addressesOf(story(), second);
        expect(await addressesOf(story(), first.slice(10))).to.deep.equal(all.slice(10));
        expect(observer.releases).to.be.at.least(10);
      });
    });
  });
});

function names(stem: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${stem}${String(index)}`);
}

async function claim(story: Story, network: string, claims: readonly string[]): Promise<void> {
  await Promise.all(claims.map((name) => story.claims.createPlain(name, network)));
}

function addressesOf(story: Story, claims: readonly string[]): Promise<string[][]> {
  return Promise.all(claims.map((name) => story.addresses.waitForIPs(name)));
}

/** Replaces the bed's ipam by two replicas. The Service is connected to one of them. */
async function withSecondIpam(
  bed: BedWithHoldfast,
  args: readonly string[],
  tell: (replicas: readonly HoldfastProcess[]) => Promise<void>,
): Promise<void> {
  const [port = 0] = await findFreePorts(1);
  const second = new HoldfastProcess(bed, 'ipam', { ...bed.ipam.ports, ipam: port });
  await bed.ipam.stop();
  try {
    await bed.ipam.start({ args });
    await second.start({ args });
    await tell([bed.ipam, second]);
  } finally {
    await Promise.all([bed.ipam.stop(), second.stop()]);
    await bed.ipam.start();
  }
}

async function leaderOf(replicas: readonly HoldfastProcess[]): Promise<HoldfastProcess> {
  return until(
    'one of them to lead',
    async () => {
      const leading = await Promise.all(replicas.map(leads));
      return replicas.find((_, index) => leading[index]);
    },
    { timeoutMs: TAKEOVER_MS },
  );
}

async function leads(replica: HoldfastProcess): Promise<boolean> {
  return /^holdfast_ipam_leads\b.* 1$/m.test(await replica.metrics());
}
