import { setTimeout as pause } from 'node:timers/promises';
import { CAPACITY_ENABLED, CAPACITY_LABEL, NETWORKS_ANNOTATION } from '../../api/names.js';
import { type Random, systemClock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { PoolSubnet } from '../../api/address-pool.js';
import { ADDRESS_POOLS, PODS } from '../../kube/resources.js';
import { until } from '../../bed/processes/wait.js';
import type { Story } from '../../bed/story/story.js';
import type { Pod } from '../../api/pod.js';
import * as vm from '../../bed/story/vms/vm.js';

const LANES = 3;
const VMS_PER_LANE = 4;
const PODS_KEPT = 6;
const THINK_MS = 1_500;
const EDIT_EVERY_MS = 15_000;
const POOL = 'chaos';
const SUBNETS = [{ cidr: '10.80.0.0/24' }, { cidr: 'fd00:80::/64' }];
const EXCLUDED = [{ ...SUBNETS[0]!, exclude: ['10.80.0.200-10.80.0.210'] }, SUBNETS[1]!];
/** A fault lasts at most 40 s, and KubeVirt retries with growing pauses. */
const PATIENCE = { timeoutMs: 240_000 };

/** Users who create, move and delete VMs and pods all the time, and administrators who edit the pool and a NAD. */
export class Churn {
  /** Number of finished actions, by kind. */
  readonly actions: Record<string, number> = {};
  /** Actions that did not finish in time. */
  readonly failures: string[] = [];
  /** VMs that exist and should run or be stopped. */
  readonly vms = new Map<string, 'running' | 'stopped'>();
  readonly #story: Story;
  readonly #random: Random;
  readonly #stopping = new AbortController();
  #running: Promise<unknown> = Promise.resolve();
  #made = 0;
  #isPaused = false;
  #busy = 0;

  constructor(story: Story, random: Random) {
    this.#story = story;
    this.#random = random;
  }

  /** @returns the address space */
  async start(): Promise<string> {
    await this.#story.labelNamespace({ [CAPACITY_LABEL]: CAPACITY_ENABLED });
    const network = await this.#story.addresses.createNetwork('blue', []);
    await this.#story.addresses.createPool(POOL, { network, subnets: SUBNETS, publishCapacity: true });
    await this.#story.addresses.createNetwork('green', ['10.82.0.0/24']);
    await this.#story.createVm('probe', { data: 'blue' });
    this.vms.set('probe', 'running');
    await this.#story.waitRunning('probe');
    return network;
  }

  begin(): void {
    this.#running = Promise.all([
      ...Array.from({ length: LANES }, () => this.#lane()),
      this.#replacePods(),
      this.#edit(),
    ]);
  }

  /** Waits until all actions have ended; none begins before `resume`. */
  async pause(): Promise<void> {
    this.#isPaused = true;
    await until('actions to end', () => this.#busy === 0, PATIENCE);
  }

  resume(): void {
    this.#isPaused = false;
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #lane(): Promise<void> {
    const mine: string[] = [];
    while (await this.#thinks(THINK_MS * (0.5 + this.#random()))) {
      const at = this.#random();
      if (mine.length < VMS_PER_LANE && (mine.length < 2 || at < 0.3)) {
        const name = `vm${String(this.#made++)}`;
        mine.push(name);
        await this.#act('VM created', name, () => this.#create(name));
        continue;
      }
      const name = mine.shift()!;
      if (at < 0.45 && mine.length > 0) await this.#act('VM deleted', name, () => this.#delete(name));
      else {
        mine.push(name);
        if (at < 0.65) await this.#act('VM restarted', name, () => this.#restart(name));
        else if (at < 0.8) await this.#act('VM stopped and started', name, () => this.#stopAndStart(name));
        else await this.#act('VM migrated', name, () => this.#migrate(name));
      }
    }
  }

  async #act(kind: string, name: string, run: () => Promise<void>): Promise<void> {
    while (this.#isPaused) {
      if (this.#stopping.signal.aborted) return;
      await pause(200);
    }
    this.#busy++;
    try {
      await run();
      this.actions[kind] = (this.actions[kind] ?? 0) + 1;
    } catch (error) {
      this.failures.push(`${kind}: ${name}: ${error instanceof Error ? error.message : String(error)}`);
    } finally {
      this.#busy--;
    }
  }

  async #create(name: string): Promise<void> {
    const networks = this.#random() < 0.3 ? { data: 'blue', extra: 'green' } : { data: 'blue' };
    await this.#story.createVm(name, networks);
    this.vms.set(name, 'running');
    await this.#waitRunning(name);
  }

  async #delete(name: string): Promise<void> {
    this.vms.delete(name);
    await this.#story.deleteVm(name, 'Background');
    await until(`${name} to be gone`, () => this.#story.waitGone(name).then(() => true), PATIENCE);
  }

  async #restart(name: string): Promise<void> {
    const before = await this.#waitRunning(name);
    await vm.callSubresource(this.#story.client, this.#story.ref(name), 'restart');
    await until(`${name} to run again`, () => this.#story.waitReplaced(name, before), PATIENCE);
  }

  async #stopAndStart(name: string): Promise<void> {
    await until(`${name} to stop`, () => this.#story.stop(name).then(() => true), PATIENCE);
    this.vms.set(name, 'stopped');
    await pause(THINK_MS);
    await vm.callSubresource(this.#story.client, this.#story.ref(name), 'start');
    this.vms.set(name, 'running');
    await this.#waitRunning(name);
  }

  /** A migration may fail, but the VM runs on. */
  async #migrate(name: string): Promise<void> {
    const migration = await this.#story.migrations.start(name);
    await until(`migration ${migration} to end`, () => this.#story.migrations.waitEnded(migration), PATIENCE);
    await until(
      `one launcher of ${name}`,
      () => this.#story.migrations.waitForOneLauncher(name).then(() => true),
      PATIENCE,
    );
    await this.#waitRunning(name);
  }

  /** A pool must not exclude leased addresses: such an edit is rejected, and left. */
  async #editPool(subnets: readonly PoolSubnet[]): Promise<void> {
    const body = { spec: { subnets } };
    const edit = () => this.#story.client.patch(ADDRESS_POOLS, { name: POOL }, { type: 'merge', body });
    const isLeased = (error: unknown) => messageOf(error).includes('would no longer be in the pool');
    const attempt = () =>
      edit().catch((error: unknown) => {
        if (!isLeased(error)) throw error;
        return true;
      });
    await until('the edit of the pool', attempt, PATIENCE);
  }

  /** @returns false if the churn ends meanwhile */
  async #thinks(ms: number): Promise<boolean> {
    await systemClock.sleep(ms, this.#stopping.signal);
    return !this.#stopping.signal.aborted;
  }

  #waitRunning(name: string) {
    return until(`${name} to run`, () => this.#story.waitRunning(name), PATIENCE);
  }

  async #replacePods(): Promise<void> {
    const mine: string[] = [];
    while (await this.#thinks(THINK_MS * 2)) {
      const name = `pod${String(this.#made++)}`;
      mine.push(name);
      await this.#act('pod started', name, () => this.#createPod(name));
      if (mine.length <= PODS_KEPT) continue;
      const oldest = mine.shift()!;
      await this.#act('pod deleted', oldest, () => this.#deletePod(oldest));
    }
  }

  async #createPod(name: string): Promise<void> {
    const metadata = { ...this.#story.ref(name), annotations: { [NETWORKS_ANNOTATION]: 'blue' } };
    const spec = { containers: [{ name: 'main', image: 'example.com/nothing' }] };
    await this.#story.client.create(PODS, { metadata, spec } as Pod);
    const runs = async () => (await this.#story.client.get(PODS, this.#story.ref(name))).status?.phase === 'Running';
    await until(`pod ${name} to run`, runs, { ...PATIENCE, everyMs: 300 });
  }

  async #deletePod(name: string): Promise<void> {
    await this.#story.client.delete(PODS, this.#story.ref(name));
    const isGone = async () => (await this.#story.client.find(PODS, this.#story.ref(name))) === undefined;
    await until(`pod ${name} to be gone`, isGone, { ...PATIENCE, everyMs: 300 });
  }

  /** Excludes addresses from the pool and includes them again, and switches persistent IPs of a NAD off and on. */
  async #edit(): Promise<void> {
    for (let round = 0; await this.#thinks(EDIT_EVERY_MS); round++) {
      await this.#act('pool edited', POOL, () => this.#editPool(round % 2 === 0 ? EXCLUDED : SUBNETS));
      await this.#act('NAD flag changed', 'green', async () => {
        const network = `${this.#story.namespace}-green`;
        const change = () =>
          this.#story.network('green', { network, persistent: round % 2 === 1, subnets: [{ cidr: '10.82.0.0/24' }] });
        await until('the edit of the NAD', () => change().then(() => true), PATIENCE);
      });
    }
  }
}
