import { expect } from 'chai';
import { whileObserved } from '../../bed/faults/while-observed.js';
import { conditionOf } from '../../bed/story/addresses.js';
import { describeOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { patiently } from '../../bed/story/patience.js';
import { until } from '../../bed/processes/wait.js';
import { bareAddress } from '../../test/bare-address.js';

/**
 * A new API server rejects requests to which a policy with parameters of our kinds applies, until it discovers new kinds after half a
 * minute. By then retries are less frequent.
 */
const POLICIES_UNREADY_MS = 90_000;

describeOnBed('While ipam runs, the API server', (story, bed) => {
  it('may restart and lose its history: addresses are kept, waiting claims are served, and released addresses are freed', async () => {
    const space = await story().addresses.createNetwork('blue', ['10.51.0.0/24', 'fd00:51::/64']);
    await whileObserved({ client: bed().client, space, namespace: story().namespace }, async () => {
      const early = ['leaves', ...Array.from({ length: 10 }, (_, index) => `early${String(index)}`)];
      await makeClaims(story(), space, early);
      const [left = [], ...before] = await addressesOf(story(), early);
      // in the middle of these changes
      await makeClaims(story(), space, ['cut1', 'cut2', 'cut3']);
      await story().claims.remove('leaves');
      await bed().etcdCompact();
      await bed().apiServer.kill();
      await bed().apiServer.start();
      await patiently(() => story().claims.createPlain('late', space));
      const waiting = ['cut1', 'cut2', 'cut3', 'late'];
      await until('all of them to be served', () => areServed(story(), waiting), { timeoutMs: POLICIES_UNREADY_MS });
      const after = await addressesOf(story(), waiting);
      expect(await addressesOf(story(), early.slice(1))).to.deep.equal(before);
      await story().addresses.waitHeld([...before, ...after].flat().map(bareAddress));
      expect(new Set([left, ...before, ...after].flat()).size).to.equal(2 * 15);
    });
  });
});

async function areServed(story: Story, names: readonly string[]): Promise<boolean> {
  const claims = await Promise.all(names.map((name) => story.waitForClaim(name)));
  return claims.every((claim) => conditionOf(claim)?.status === 'True');
}

describeOnBed('While ipam is down', (story, bed) => {
  it('a new VM gets an event that says so, and its addresses when ipam is back', async () => {
    await story().addresses.createNetwork('blue', ['10.51.2.0/24']);
    await bed().ipam.kill();
    try {
      await story().createVm('vm1', { data: 'blue' }, { running: false });
      const { message } = await story().waitForEvent('vm1', 'IPAMNotAnswering');
      expect(message).to.include('IPAMClaim vm1.data').and.to.include('holdfast-ipam');
    } finally {
      await bed().ipam.start();
    }
    expect(await story().addresses.waitForIPs('vm1.data')).to.have.lengthOf(1);
  });

  it('no event is lost: new claims are served and addresses of deleted ones are freed when it is back', async () => {
    const network = await story().addresses.createNetwork('blue', ['10.51.1.0/30']);
    await makeClaims(story(), network, ['leaves', 'stays']);
    const [left, kept] = await addressesOf(story(), ['leaves', 'stays']);
    await bed().ipam.kill();
    try {
      await story().claims.remove('leaves');
      await story().claims.waitGone('leaves');
      await makeClaims(story(), network, ['comes']);
    } finally {
      await bed().ipam.start();
    }
    // there are only two addresses
    expect(await addressesOf(story(), ['comes', 'stays'])).to.deep.equal([left, kept]);
  });
});

async function makeClaims(story: Story, network: string, names: readonly string[]): Promise<void> {
  await Promise.all(names.map((name) => story.claims.createPlain(name, network)));
}

function addressesOf(story: Story, names: readonly string[]): Promise<string[][]> {
  return Promise.all(names.map((name) => story.addresses.waitForIPs(name)));
}
