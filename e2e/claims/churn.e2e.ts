import { expect } from 'chai';
import { systemClock } from '../../kube/clock.js';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import { describeOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until } from '../../bed/processes/wait.js';
import { patiently } from '../../bed/story/patience.js';

const VMS = 200;
const CHURN_MS = 120_000;
const KILL_EVERY_MS = 5_000;
/** Number of VMs that run, so that some are started and stopped. */
const RUNNING = 10;
const COOLDOWN_MS = 1_000; // twice the --max-staleness of the bed

describeOnBed('200 VMs that are created and deleted on a /24 network', (story, bed) => {
  it('never share or lose an address although ipam is killed every few seconds and the API server once', async function () {
    this.timeout(10 * 60_000);
    const space = await story().addresses.createNetwork('blue', ['10.40.0.0/24']);
    const observer = new ClaimLeaseObserver(bed().client, {
      space,
      cooldownMs: COOLDOWN_MS,
      namespace: story().namespace,
    });
    observer.start();
    const stop = new AbortController();
    const crowd = new Crowd(story());
    await crowd.grow();
    const killing = killAgainAndAgain(bed(), stop.signal);
    try {
      await crowd.churn(CHURN_MS, () => restartApiServer(bed()));
    } finally {
      stop.abort();
      await killing;
    }
    await crowd.grow();
    await until(
      'claims and leases to be consistent',
      () => {
        const open = observer.inconsistencies();
        if (open.length > 0) throw new Error(open.slice(0, 5).join('; '));
        return true;
      },
      { timeoutMs: 120_000 },
    );
    await observer.stop();
    expect(observer.violations.slice(0, 10).join('\n')).to.equal('');
    expect(observer.releases).to.be.greaterThan(50);
    expect(await killing).to.be.greaterThan(5);
  });
});

/** VMs that are created and deleted all the time. */
class Crowd {
  readonly #story: Story;
  readonly #names = new Set<string>();
  #made = 0;
  #restarted = false;

  constructor(story: Story) {
    this.#story = story;
  }

  /** Creates VMs until their number is complete. */
  async grow(): Promise<void> {
    while (this.#names.size < VMS) await Promise.all(Array.from({ length: 10 }, () => this.#come()));
  }

  /** Deletes the oldest VMs and creates others. In the middle, the API server restarts. */
  async churn(durationMs: number, restart: () => Promise<void>): Promise<void> {
    const began = Date.now();
    while (Date.now() - began < durationMs) {
      const leaving = [...this.#names].slice(0, 4);
      await Promise.all([...leaving.map((name) => this.#go(name)), ...leaving.map(() => this.#come())]);
      if (!this.#restarted && Date.now() - began > durationMs / 2) {
        this.#restarted = true;
        await restart();
      }
    }
  }

  async #come(): Promise<void> {
    const name = `vm${String(this.#made++)}`;
    this.#names.add(name);
    const running = this.#made % (VMS / RUNNING) === 0;
    await patiently(() => this.#story.createVm(name, { data: 'blue' }, { running }));
  }

  async #go(name: string): Promise<void> {
    this.#names.delete(name);
    await patiently(() => this.#story.deleteVm(name, 'Background'));
  }
}

/** @returns the number of kills */
async function killAgainAndAgain(bed: BedWithHoldfast, signal: AbortSignal): Promise<number> {
  let kills = 0;
  while (!signal.aborted) {
    await systemClock.sleep(KILL_EVERY_MS, signal);
    await bed.ipam.kill();
    await patiently(() => bed.ipam.launch());
    kills++;
  }
  await bed.ipam.waitReady();
  return kills;
}

async function restartApiServer(bed: BedWithHoldfast): Promise<void> {
  await bed.apiServer.kill();
  await bed.apiServer.start();
}
