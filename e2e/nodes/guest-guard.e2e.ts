import { expect } from 'chai';
import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import type { Pod } from '../../api/pod.js';
import type { Guest } from '../../bed/real-nodes/guest.js';
import { until } from '../../bed/processes/wait.js';
import { MIGRATION_POLICIES } from '../../bed/story/vms/migrations.js';
import { describeWithGuests } from '../../bed/story/nodes.js';
import { bareAddress } from '../../test/bare-address.js';
import { misdeliveredTo, observeTraffic, serveTcp } from '../../bed/story/real-nodes/migration-traffic.js';

const MAC = '02:00:00:00:87:07';
/** A target has up to this time to start, and the migration to end. */
const FOR_MS = 30_000;
const SHORT_GAP_MS = 20;
/**
 * Without a hold, switches send frames for the guest to the port of the target that is gone, until the guest sends something. It answers
 * a neighbour that asks all hosts, 54 s after the last answer at the latest: 1.5 * base_reachable_time, delay_first_probe_time, 3 probes of 1 s.
 */
const LEARNING = { timeoutMs: 60_000 };
/** A guest has about 70 MiB that QEMU copies, so it can be disturbed. */
const SLOW = { bandwidthPerMigration: '1Mi', allowPostCopy: false };
/** After a second, the guest runs on the target, and its memory follows. */
const POST_COPY = { ...SLOW, allowPostCopy: true, completionTimeoutPerGiB: 1 };

describeWithGuests('A guest with its MAC address in the spec', (story, nodes) => {
  afterEach('remove the policy', () => story().client.delete(MIGRATION_POLICIES, { name: story().namespace }));

  for (const [title, guard, subnet] of [
    ['behind a guard', { mode: 'Enforce' }, '10.87.0.0/28'],
    ['behind a guard without a hold', { mode: 'Enforce', migrationHold: false }, '10.87.1.0/28'],
  ] as const) {
    const isHeld = !('migrationHold' in guard);
    const what = isHeld ? 'misdelivers nothing and keeps connections' : 'can be reached again at its address';

    it(`${what} when migrations are cancelled, fail or end by post-copy, in both directions, ${title}`, async function () {
      this.timeout(600_000);
      const scene = await begin(subnet, guard);
      for (const direction of ['there', 'back'])
        for (const [name, disturb] of Object.entries({ cancelled, killed, postCopy })) {
          const observed = observeTraffic(nodes(), { ...scene, forMs: FOR_MS });
          const misdelivered = await disturb(scene.vmi);
          const figures = { ...(await observed), misdelivered };
          process.stdout.write(`        ${title}, ${name}, ${direction}: ${JSON.stringify(figures)}\n`);
          if (!isHeld) await until('the switches to find the guest again', () => canBeReached(scene), LEARNING);
          await staysReachable(scene);
          if (!isHeld) continue;
          expect(figures).to.include({ misdelivered: 0, connection: 'kept' });
          // a busy machine loses one packet now and then
          const gaps = Object.values(figures.gaps).filter((forMs) => forMs > SHORT_GAP_MS);
          expect(gaps).to.have.length.of.at.most(name === 'postCopy' ? 1 : 0);
        }
    });
  }

  it('misdelivers nothing and keeps connections in migrations in both directions, behind a guard that only observes', async function () {
    this.timeout(400_000);
    const scene = await begin('10.87.4.0/28', { mode: 'Observe' });
    for (const direction of ['there', 'back']) {
      const observed = observeTraffic(nodes(), { ...scene, forMs: FOR_MS });
      await story().migrate('web', 'Succeeded');
      const [launcher] = await story().launchers('web');
      const figures = { misdelivered: await misdeliveredTo(nodes(), launcher!), ...(await observed) };
      process.stdout.write(`        ${direction}: ${JSON.stringify(figures)}\n`);
      expect(figures).to.include({ misdelivered: 0, connection: 'kept' });
    }
  });

  for (const [title, policy, subnet] of [
    ['before it has moved', SLOW, '10.87.2.0/28'],
    ['while its memory follows', POST_COPY, '10.87.3.0/28'],
  ] as const) {
    it(`starts again with its address behind a guard when the source of a migration is killed ${title}`, async function () {
      this.timeout(300_000);
      const { client, vmi, guest, address } = await begin(subnet, { mode: 'Enforce' });
      const [source] = await story().launchers('web');
      await guest.askQemu({ execute: 'migrate-set-parameters', arguments: { 'max-postcopy-bandwidth': 4_096 } });
      await migrate(policy);
      if (policy.allowPostCopy) await story().migrations.waitPostCopy(vmi);
      await killQemu(source!);
      const again = await story().waitReplaced('web', vmi);
      await nodes().guest(again).waitAddress('eth1', address);
      await staysReachable({ client, vmi: again, address });
    });
  }

  async function begin(subnet: string, guard: object): Promise<Scene> {
    await nodes().createNetwork('blue', [subnet], { guard });
    const client = await nodes().createPod('client', { networks: [{ name: 'blue' }] });
    const vmi = await story().runVm('web', { data: 'blue' }, { macs: { data: MAC } });
    const guest = nodes().guest(vmi);
    const [address = ''] = (await story().addresses.waitForIPs('web.data')).map(bareAddress);
    await until('the guest to answer', () => guest.run('true').then(() => true));
    await guest.waitAddress('eth1', address);
    await serveTcp(guest);
    return { client, vmi, guest, address };
  }

  function canBeReached({ client, address }: Scene): Promise<boolean> {
    return nodes()
      .ping(client, address)
      .then(() => true);
  }

  async function staysReachable({ client, vmi, address }: Omit<Scene, 'guest'>): Promise<void> {
    await nodes().ping(client, address);
    await nodes().guest(vmi).waitAddress('eth1', address);
    expect((await story().addresses.waitForIPs('web.data')).map(bareAddress)).to.deep.equal([address]);
  }

  /** Begins a migration, and waits until the guest is copied. */
  async function migrate(policy: object): Promise<string> {
    await story().migrations.setPolicy(policy);
    const name = await story().migrations.start('web');
    await story().migrations.waitCopying(name);
    return name;
  }

  async function cancelled(): Promise<number> {
    const name = await migrate(SLOW);
    const misdelivered = await misdeliveredTo(nodes(), await targetLauncher());
    await story().migrations.abort('web', name);
    return misdelivered;
  }

  async function killed(): Promise<number> {
    const name = await migrate(SLOW);
    const target = await targetLauncher();
    const misdelivered = await misdeliveredTo(nodes(), target);
    await killQemu(target);
    expect(await story().migrations.waitEnded(name)).to.equal('Failed');
    await story().migrations.waitForOneLauncher('web');
    return misdelivered;
  }

  async function postCopy(vmi: VirtualMachineInstance): Promise<number> {
    const name = await migrate(POST_COPY);
    await story().migrations.waitPostCopy(vmi);
    expect(await story().migrations.waitEnded(name)).to.equal('Succeeded');
    await story().migrations.waitForOneLauncher('web');
    const [launcher] = await story().launchers('web');
    return misdeliveredTo(nodes(), launcher!);
  }

  async function targetLauncher(): Promise<Pod> {
    const pods = await story().launchers('web');
    expect(pods).to.have.length(2);
    return pods.at(-1)!;
  }

  async function killQemu(launcher: Pod): Promise<void> {
    const node = nodes().node(launcher.spec?.nodeName);
    const pid = await node.processOf(launcher);
    await node.run('sh', '-euc', 'kill -KILL $(cat /proc/"$1"/task/*/children)', 'sh', pid);
  }
});

interface Scene {
  readonly client: Pod;
  readonly vmi: VirtualMachineInstance;
  readonly guest: Guest;
  readonly address: string;
}
