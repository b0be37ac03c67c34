import { join } from 'node:path';
import { expect } from 'chai';
import { bareAddress } from '../../test/bare-address.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import { IP_POOLS } from '../../cli/whereabouts/plan-types.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { ADDRESS_LEASES, ADDRESS_POOLS, NETWORK_ATTACHMENT_DEFINITIONS, PODS } from '../../kube/resources.js';
import { makeLargeCluster } from '../../cli/testing/migration-world.js';
import type { Bed } from '../../bed/bed.js';
import { createCrds } from '../../bed/control-plane/crds.js';
import { readManifests } from '../../bed/control-plane/objects.js';
import { ApiProxy } from '../../bed/faults/api-proxy.js';
import { describeStory } from '../../bed/story/describe.js';
import { KubectlPlugin, type PluginResult } from '../../bed/story/kubectl/kubectl-plugin.js';
import { bridgeOf } from '../../bed/story/networks.js';
import type { Story } from '../../bed/story/story.js';
import { until, untilValue } from '../../bed/processes/wait.js';
import { type WireStory, itWithWireStory } from '../../bed/story/wire/wire-story.js';

const ALLOCATIONS = 10_000;
/** Number of pods that exist only as objects, on no node. */
const LIVE = 600;
/** For a write of all allocations on a busy machine. */
const LARGE = { deadlineMs: 60_000 };
/** Number of leases after which the command is killed. */
const HALF = 100;
/** Six usable addresses: four in use, two free. */
const TIGHT = '10.75.0.0/29';
const IN_USE = ['10.75.0.1', '10.75.0.2', '10.75.0.3', '10.75.0.4'];

/** The CNI config of a network of whereabouts. */
function whereaboutsConfig(network: string, range: string): object {
  const plugin = { type: 'bridge', bridge: bridgeOf(network), capabilities: { ips: true } };
  return { cniVersion: '1.0.0', name: network, ...plugin, ipam: { type: 'whereabouts', range } };
}

/** The record of whereabouts for a pod with real networks. */
function allocationOf(wire: WireStory, pod: Pod): object {
  const { namespace, name } = pod.metadata;
  return { id: wire.context.wire.sandboxOf(pod).containerId, podref: `${namespace}/${name}`, ifname: 'net1' };
}

/** A cluster with whereabouts: some pods with real networks, and many that exist only as objects. */
async function settle(story: Story, wire: WireStory): Promise<{ tight: string; many: string; pods: Pod[] }> {
  const { client, namespace } = story;
  const manifest = join(import.meta.dirname, '..', '..', 'bed', 'manifests', 'whereabouts.yaml');
  await createCrds(client, await readManifests(manifest));
  const [tight, many] = [`${namespace}-tight`, `${namespace}-many`];
  await story.network('tight', { config: whereaboutsConfig(tight, TIGHT) });
  await story.network('many', { config: whereaboutsConfig(many, '10.74.0.0/16') });
  const names = ['stays', 'ends', 'ended-by-hand', 'goes'];
  for (const [index, name] of names.entries()) {
    await wire.createPod(name, { networks: [{ name: 'tight', ips: [`${IN_USE[index]}/29`] }] });
  }
  const pods = await Promise.all(names.map((name) => wire.waitRunning(name)));
  const allocations = pods.map((pod, index) => [String(index + 1), allocationOf(wire, pod)] as const);
  await client.create(IP_POOLS, {
    metadata: { namespace, name: '10.75.0.0-29' },
    spec: {
      range: TIGHT,
      allocations: { ...Object.fromEntries<unknown>(allocations), no: 7, '6': { podref: 'x/gone' } },
    },
  });
  await createMany(story);
  return { tight, many, pods };
}

/** Ten thousand allocations, of which some are invalid and some have pods. */
async function createMany({ client, namespace }: Story): Promise<void> {
  const { ipPools } = makeLargeCluster(ALLOCATIONS, { namespace });
  const [pool] = ipPools;
  await client.create(IP_POOLS, { ...pool, metadata: { ...pool!.metadata, namespace } }, LARGE);
  const { allocations } = pool!.spec as { allocations: Record<string, { podref?: unknown } | null> };
  const refs = Object.values(allocations).flatMap((each) => (typeof each?.podref === 'string' ? [each.podref] : []));
  const names = refs.filter((ref) => ref.startsWith(`${namespace}/`)).map((ref) => ref.slice(namespace.length + 1));
  await forEachParallel(names.slice(0, LIVE), 16, async (name) => {
    await client.create(PODS, idlePod(namespace, name));
  });
}

/** Adds an allocation of whereabouts before its NAD is changed. */
async function lastMinute({ client, namespace }: Story): Promise<void> {
  await client.create(PODS, idlePod(namespace, 'last-minute'));
  const allocations = { 12000: { id: 'c', podref: `${namespace}/last-minute`, ifname: 'net1' } };
  const patch = { type: 'merge', body: { spec: { allocations } } } as const;
  await client.patch(IP_POOLS, { namespace, name: '10.74.0.0-16' }, patch, LARGE);
}

/** A scheduler name that no scheduler has. */
function idlePod(namespace: string, name: string): Pod {
  const spec = { containers: [{ name: 'c', image: 'registry.test/c' }], schedulerName: 'nobody' };
  return { metadata: { namespace, name }, spec } as Pod;
}

describeStory('A cluster that moves from whereabouts', (story) => {
  itWithWireStory('keeps every address in use although the move is killed and repeated', story, async (wire) => {
    const { client, namespace } = story();
    const { tight, many, pods } = await settle(story(), wire);
    const [stays, ends, byHand] = pods as [Pod, Pod, Pod];
    const { bed } = wire.context;
    const runWith = (kubeconfig: string, ...args: string[]): KubectlPlugin =>
      new KubectlPlugin(kubeconfig, ['migrate', 'whereabouts', '--namespace', namespace, ...args]);
    const run = (...args: string[]): KubectlPlugin => runWith(bed.kubeconfig, ...args);
    const expectDone = async (plugin: KubectlPlugin): Promise<PluginResult> => {
      const end = await plugin.result;
      expect(end.exitCode, `${end.stdout}\n${end.stderr}`).to.equal(0);
      return end;
    };
    const leases = async () => (await story().addresses.leases()).size;

    const planned = await expectDone(run());
    expect(planned.stdout)
      .to.include(`Nothing has been written yet: 2 pools and ${LIVE + 4} leases to create`)
      .and.match(/and \d+ more: -o json prints all/);
    const asJson = await expectDone(run('--network', tight, '-o', 'json'));
    const { leftOut } = (JSON.parse(asJson.stdout) as { plan: { leftOut: { source: string; reason: string }[] } }).plan;
    expect(leftOut.map(({ source, reason }) => `${source.replace(/.* /, '')} ${reason}`)).to.have.members([
      '"no" unreadable',
      '"6" pod-gone',
    ]);
    expect(await leases()).to.equal(0);
    expect(await client.find(ADDRESS_POOLS, { name: `${tight}.${namespace}` })).to.equal(undefined);

    await killedHalfway(bed, (kubeconfig) => runWith(kubeconfig, '--apply'));
    expect(await leases()).to.be.within(1, LIVE + 3);

    const applied = await expectDone(run('--apply', '-o', 'json'));
    expect(await leases()).to.equal(LIVE + 4);
    await lastMinute(story());
    const { plan } = JSON.parse(applied.stdout) as { plan: { changes: { nad: string; config: string }[] } };
    for (const { nad, config } of plan.changes) {
      const ref = { namespace, name: nad.replace(/.*\//, '') };
      const patch = { type: 'merge', body: { spec: { config } } } as const;
      await client.patch<NetworkAttachmentDefinition>(NETWORK_ATTACHMENT_DEFINITIONS, ref, patch);
    }
    const last = await expectDone(run('--apply'));
    expect(last.stdout).to.include('created 0 pools and 1 lease;');
    for (const [network, leased] of [
      [tight, 4],
      [many, LIVE + 1],
    ] as const) {
      await story().addresses.waitForPool(
        `${network}.${namespace}`,
        `to serve, with ${leased} leased`,
        ({ status }) => {
          const agrees = status?.conditions?.some(({ type, status: is }) => type === 'NetworksAgree' && is === 'True');
          return agrees === true && status?.leased === leased;
        },
      );
    }

    // new pods get the free addresses, and then none
    const fresh = await wire.createNeighbour('tight', 'node-1', 'fresh');
    const other = await wire.createNeighbour('tight', 'node-2', 'other');
    const taken = [await wire.addressOf(fresh), await wire.addressOf(other)].map(bareAddress).sort();
    expect(taken).to.deep.equal(['10.75.0.5', '10.75.0.6']);
    await wire.createPod('late', { networks: [{ name: 'tight' }] });
    expect(await wire.waitForSandboxFailure('late', /is full/)).to.include('6 of 6');

    // pods from before keep their addresses
    expect(await wire.addressOf(stays)).to.equal(`${IN_USE[0]}/29`);
    await wire.waitReachable(fresh, [IN_USE[0]!]);

    // the plugin's DEL releases by container and interface
    const config = { cniVersion: '1.0.0', name: tight, type: 'bridge', ipam: { type: 'holdfast' } };
    const { node } = wire.context.wire.sandboxOf(byHand);
    // the page says so: an agent lists the leases of its node at its start
    const agent = wire.context.agents.on(node);
    await agent.kill();
    await agent.start();
    const call = { verb: 'DEL', config, pod: byHand, interfaceName: 'net1' } as const;
    expect(await wire.context.wire.callPlugin(node, call)).to.deep.equal({ exitCode: 0, answer: undefined });
    await untilReleased(story(), `${tight}.10-75-0-3`);
    // a pod that ends by the DEL of whereabouts, which does not know leases
    await wire.deletePod(ends.metadata.name);
    await untilReleased(story(), `${tight}.10-75-0-2`);
    expect((await client.get(ADDRESS_LEASES, { name: `${tight}.10-75-0-1` })).spec.owner?.uid).to.equal(
      stays.metadata.uid,
    );
  });
});

/** Kills a command that has created some leases, and gets no answer about the last ones. */
async function killedHalfway(bed: Bed, start: (kubeconfig: string) => KubectlPlugin): Promise<void> {
  let created = 0;
  const onWrite = (what: string) => {
    const isLast = what.includes('/addressleases') && ++created > HALF;
    return isLast ? new Promise<void>(() => undefined) : undefined;
  };
  const proxy = await ApiProxy.open(bed, { onWrite });
  try {
    const command = start(await proxy.kubeconfig(bed.kubeconfig));
    await until('leases to be created', () => created > HALF);
    command.kill();
    expect((await command.result).exitCode).to.equal(undefined);
  } finally {
    await proxy.close();
  }
}

/** True if the lease is released or, after its cool-down, deleted. */
async function untilReleased({ client }: Story, name: string): Promise<void> {
  await untilValue(
    `AddressLease ${name} to be released`,
    () => client.find(ADDRESS_LEASES, { name }),
    (lease) => lease === undefined || lease.spec.releasedAt !== undefined || lease.spec.owner?.name === 'late',
  );
}
