import { expect } from 'chai';
import type { BedWithHoldfast } from '../../bed/environment.js';
import { KillAtWork } from '../../bed/faults/kill-at-work.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import { describeOnBed } from '../../bed/story/describe.js';
import type { Story } from '../../bed/story/story.js';
import { until } from '../../bed/processes/wait.js';
import { patiently } from '../../bed/story/patience.js';

const VMS = 200;
const KILLS = 24;
const RELEASES = 150;
/** For each half of the churn, which takes about half a minute. */
const LIMIT_MS = 5 * 60_000;
/** Number of VMs that run, so that some are started and stopped. */
const RUNNING = 10;
const COOLDOWN_MS = 1_000; // twice the --max-staleness of the bed

describeOnBed('200 VMs that are created and deleted on a /24 network', (story, bed) => {
  it('never share or lose an address although ipam is killed every few seconds and the API server once', async function () {
    this.timeout(15 * 60_000);
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
    const killer = new KillAtWork(bed().ipam, observer);
    const killing = killer.run(KILLS, stop.signal);
    try {
      await crowd.churn(
        () => killer.kills >= KILLS && observer.releases >= RELEASES,
        () => killer.kills >= KILLS / 2,
        () => restartApiServer(bed()),
      );
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
  });
});

/** VMs that are created and deleted all the time. */
class Crowd {
  readonly #story: Story;
  readonly #names = new Set<string>();
  #made = 0;

  constructor(story: Story) {
    this.#story = story;
  }

  /** Creates VMs until their number is complete. */
  async grow(): Promise<void> {
    while (this.#names.size < VMS) await Promise.all(Array.from({ length: 10 }, () => this.#come()));
  }

  /** Deletes the oldest VMs and creates others. In the middle, the API server restarts. */
  async churn(isDone: () => boolean, isHalfWay: () => boolean, restart: () => Promise<void>): Promise<void> {
    await this.#replaceUntil(isHalfWay);
    await restart();
    await this.#replaceUntil(isDone);
  }

  async #replaceUntil(isEnough: () => boolean): Promise<void> {
    const deadline = Date.now() + LIMIT_MS;
    while (!isEnough()) {
      if (Date.now() > deadline) throw new Error(`the churn is not half done after ${LIMIT_MS} ms`);
      const leaving = [...this.#names].slice(0, 4);
      await Promise.all([...leaving.map((name) => this.#go(name)), ...leaving.map(() => this.#come())]);
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

async function restartApiServer(bed: BedWithHoldfast): Promise<void> {
  await bed.apiServer.kill();
  await bed.apiServer.start();
}
