import { expect } from 'chai';
import { findFreePorts } from '../../bed/processes/ports.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { whileObserved } from '../../bed/faults/while-observed.js';
import { HoldfastProcess } from '../../bed/holdfast/process.js';
import { until } from '../../bed/processes/wait.js';
import { describeOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';

describeOnBed('Two replicas of ipam', (story, bed) => {
  it('lease no address twice if both work at once, because the lease itself is the lock', async () => {
    await withoutElection(bed(), async (replicas) => {
      // as many addresses as claims, so that both replicas compete for each of them
      const network = await story().addresses.createNetwork('blue', ['10.52.1.0/27']);
      await whileObserved({ client: bed().client, space: network, namespace: story().namespace }, async (observer) => {
        for (const replica of replicas) await until('a replica without election to work', () => leads(replica));
        const first = names('first', 30);
        await claim(story(), network, first);
        const all = await addressesOf(story(), first);
        expect(new Set(all.flat()).size).to.equal(30);
        await Promise.all(first.slice(0, 10).map((name) => story().claims.remove(name)));
        const second = names('second', 10);
        await claim(story(), network, second);
        await addressesOf(story(), second);
        expect(await addressesOf(story(), first.slice(10))).to.deep.equal(all.slice(10));
        await until('the releases to be observed', () => observer.releases >= 10);
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

/** Replaces the bed's ipam by two replicas that both work. The Service is connected to one of them. */
async function withoutElection(
  bed: BedWithHoldfast,
  tell: (replicas: readonly HoldfastProcess[]) => Promise<void>,
): Promise<void> {
  const [port = 0] = await findFreePorts(1);
  const second = new HoldfastProcess(bed, 'ipam', { ...bed.ipam.ports, ipam: port });
  const args = ['--leader-elect=false'];
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

async function leads(replica: HoldfastProcess): Promise<boolean> {
  return /^holdfast_leading_status{name="holdfast-ipam"} 1$/m.test(await replica.metrics());
}
