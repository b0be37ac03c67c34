import { expect } from 'chai';
import type { Bed } from '../../bed/bed.js';
import { pendingDeletesOn } from '../../bed/faults/agent-pods.js';
import { PodObserver } from '../../bed/faults/pod-observer.js';
import { CURRENT_RELEASE, previousRelease, type Release } from '../../bed/holdfast/release.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import { useBareBed } from '../../bed/story/bare-bed.js';
import { reportSkipped } from '../../test/report-skipped.js';
import { EVENTS } from '../../bed/story/events.js';
import { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { Rollout } from './rollout.js';
import { Workloads } from './workloads.js';

/** Twice the --max-staleness of the bed. */
const COOLDOWN_MS = 1_000;
/** The kubelet retries while no agent runs, and KubeVirt before 1.9 has a defect that migrations show. */
const EXPECTED_WARNINGS: readonly string[] = ['FailedCreatePodSandBox', 'DHCPLostAfterMigration'];

describe('Upgrades between the previous release and this version', function () {
  this.timeout(15 * 60_000);
  let bed: Bed;
  let previous: Release;
  let rollout: Rollout;
  let story: Story;
  let workloads: Workloads;
  let claimObservers: readonly ClaimLeaseObserver[] = [];
  let podObservers: readonly PodObserver[] = [];
  let hasFailed = false;

  before('install the previous release', async function () {
    const found = await previousRelease();
    if (typeof found === 'string') {
      reportSkipped(`not tested with the previous release: ${found}`);
      return this.skip();
    }
    previous = found;
    bed = await startBareBed();
    if (bed.wire === undefined) return this.skip();
    rollout = new Rollout(bed);
    await rollout.applyManifests(previous);
    await rollout.startAll(previous);
    const { client, kubeconfig } = bed;
    story = await Story.begin({ client, kubeconfig, bed: undefined, stop: () => Promise.resolve() });
    workloads = await Workloads.create(story, bed, bed.wire);
    observe(workloads.networks);
    await workloads.waitForBlocks();
  });

  after('stop the observers', async () => {
    await Promise.all([...claimObservers, ...podObservers].map((each) => each.stop()));
  });
  const startBareBed = useBareBed();

  beforeEach('go on only if all was well', function () {
    if (hasFailed) this.skip();
  });

  afterEach('remember a failure', function () {
    hasFailed ||= this.currentTest?.state === 'failed';
  });

  it('change no address in the documented order: manifests, ipam, agents, controller, webhook', async () => {
    await rollout.applyManifests(CURRENT_RELEASE);
    await rollout.restartAll();
    await workloads.exercise();
    await rollout.replace('ipam', CURRENT_RELEASE, async () => {
      await replaceAgent('node-1', CURRENT_RELEASE);
      await workloads.exercise();
    });
    await rollout.installPlugin(CURRENT_RELEASE);
    await replaceAgent('node-2', CURRENT_RELEASE);
    await rollout.replace('controller', CURRENT_RELEASE);
    await rollout.replace('webhook', CURRENT_RELEASE, () => workloads.exercise());
    await rollout.replace('capacity', CURRENT_RELEASE);
  });

  it('change no address on the way back, with the kinds of this version', async () => {
    await rollout.replace('webhook', previous);
    await rollout.replace('controller', previous, () => workloads.exercise());
    await rollout.installPlugin(previous);
    await Promise.all(bed.nodes.map((node) => replaceAgent(node, previous)));
    await Promise.all([rollout.replace('ipam', previous), rollout.replace('capacity', previous)]);
    await rollout.applyWorkloads(previous);
  });

  it('change no address in the reverse order', async () => {
    await rollout.applyManifests(CURRENT_RELEASE);
    await rollout.replace('webhook', CURRENT_RELEASE, () => workloads.exercise());
    await rollout.replace('controller', CURRENT_RELEASE);
    await rollout.installPlugin(CURRENT_RELEASE);
    await replaceAgent('node-2', CURRENT_RELEASE);
    await replaceAgent('node-1', CURRENT_RELEASE);
    await rollout.replace('ipam', CURRENT_RELEASE, () => workloads.exercise());
    await rollout.replace('capacity', CURRENT_RELEASE);
  });

  it('leave no claim and no address behind, cause no warning, and never lease an address twice', async () => {
    await until('claims and leases to be consistent', () => {
      const open = claimObservers.flatMap((each) => each.inconsistencies());
      if (open.length > 0) throw new Error(open.join('; '));
      return true;
    });
    await workloads.end();
    await Promise.all(claimObservers.map((each) => each.stop()));
    expect(claimObservers.flatMap(({ violations }) => violations)).to.deep.equal([]);
    expect(claimObservers[0]?.releases).to.be.greaterThan(5);
    expect((await Promise.all(podObservers.map((each) => each.stop()))).flat()).to.deep.equal([]);
    const { items } = await bed.client.list(EVENTS, { namespace: story.namespace });
    const warnings = items.filter(({ type, reason = '' }) => type === 'Warning' && !EXPECTED_WARNINGS.includes(reason));
    expect(warnings.map(({ reason, message }) => `${reason ?? ''}: ${message ?? ''}`)).to.deep.equal([]);
    await story.end();
  });

  function observe({ blue, office, slices, sticky }: Workloads['networks']): void {
    const { client } = bed;
    const { namespace } = story;
    claimObservers = [blue, office].map(
      (space) => new ClaimLeaseObserver(client, { space, cooldownMs: COOLDOWN_MS, namespace }),
    );
    podObservers = [slices, sticky].map((space) => new PodObserver(client, { space, namespace }));
    for (const each of [...claimObservers, ...podObservers]) each.start();
  }

  /** Replaces an agent, while one pod of its node ends and another one starts. */
  async function replaceAgent(node: string, release: Release): Promise<void> {
    let waits: (() => Promise<void>)[] = [];
    await rollout.replaceAgent(node, release, async () => {
      waits = await Promise.all([workloads.endPod(node), workloads.beginPod(node)]);
    });
    await Promise.all(waits.map((wait) => wait()));
    await untilValue(
      'no pending delete to be left',
      () => pendingDeletesOn(bed, node).length,
      (count) => count === 0,
    );
  }
});
