import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine } from '../api/kubevirt.js';
import { Client } from '../kube/client.js';
import { loadCredentials } from '../kube/transport/credentials.js';
import { Informer } from '../kube/informers/informer.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINES } from '../kube/resources.js';
import { Transport } from '../kube/transport/transport.js';
import type { BedWithHoldfast } from '../bed/environment.js';
import { HOLDFAST_NAMESPACE } from '../bed/holdfast/install.js';
import type { Story } from '../bed/story/story.js';
import { until } from '../bed/processes/wait.js';
import { runLoad } from './load.js';
import type { Figure } from './report.js';
import { type Usage, usageOf } from './usage.js';

const VMS = 500;
const CLAIMS = 2 * VMS;
const CONCURRENCY = 16;

/** Measures the creation and release of claims of 500 VMs with two networks each, compared with bare writes of the same objects. */
export async function benchClaims(bed: BedWithHoldfast, story: Story): Promise<Figure[]> {
  const lone = await measureSingleVm(story);
  await story.network('blue', { persistent: false });
  await runLoad((n) => createVm(story, n).then(() => undefined), { count: VMS, concurrency: CONCURRENCY });
  const counter = new ClaimCounter(story);
  await counter.reached(0);

  const before = await usageOf(bed.controller.pid);
  const created = await timed(async () => {
    await story.network('blue', { persistent: true }); // now all 500 VMs need claims at once
    await counter.reached(CLAIMS);
  });
  const after = await usageOf(bed.controller.pid);
  const floor = await measureBareWrites(bed, story);

  const deleted = await timed(async () => {
    const { items } = await story.client.list(VIRTUAL_MACHINES, { namespace: story.namespace });
    const drop = async (n: number) => {
      await story.client.delete(VIRTUAL_MACHINES, story.ref(items[n]!.metadata.name));
    };
    await runLoad(drop, { count: items.length, concurrency: CONCURRENCY });
    await counter.reached(0);
  });
  await counter.stop();
  return figuresOf({ lone, created, deleted, floor, before, after, end: await usageOf(bed.controller.pid) });
}

interface ClaimMeasurements {
  lone: number;
  created: number;
  deleted: number;
  floor: { create: number; remove: number };
  before: Usage;
  after: Usage;
  end: Usage;
}

function figuresOf({ lone, created, deleted, floor, before, after, end }: ClaimMeasurements): Figure[] {
  const cpu = after.cpuSeconds - before.cpuSeconds;
  return [
    { name: 'claims: VM to claim, a lone VM', value: lone * 1000, unit: 'ms' },
    { name: `claims: ${String(CLAIMS)} created in`, value: created, unit: 's' },
    { name: 'claims: rate', value: CLAIMS / created, unit: '/s' },
    { name: 'claims: bare creates, floor', value: CLAIMS / floor.create, unit: '/s' },
    { name: 'claims: rate, of the floor', value: floor.create / created, unit: '', target: { atLeast: 0.9 } },
    { name: 'claims: CPU for all', value: cpu, unit: 's' },
    { name: `claims: gone with ${String(VMS)} deleted VMs in`, value: deleted, unit: 's' },
    { name: 'claims: bare delete + finalizer, floor', value: floor.remove, unit: 's' },
    { name: 'claims: gone, of the floor', value: deleted / floor.remove, unit: '', target: { atMost: 1.3 } },
    { name: 'controller: RSS before', value: before.rssMiB, unit: 'MiB' },
    { name: 'controller: RSS with all claims', value: after.rssMiB, unit: 'MiB' },
    { name: 'controller: RSS afterwards', value: end.rssMiB, unit: 'MiB' },
    { name: 'controller: peak RSS', value: end.peakMiB, unit: 'MiB' },
  ];
}

/** Returns the median of the seconds from the creation of a VM to that of its claim. */
async function measureSingleVm(story: Story): Promise<number> {
  await story.network('blue');
  const seconds: number[] = [];
  for (let n = 0; n < 5; n++) {
    const name = `lone${String(n)}`;
    const vm = await story.createVm(name, { data: 'blue' }, { running: false });
    const began = performance.now();
    await until(`the claim of ${name}`, () => story.client.find(IPAM_CLAIMS, story.ref(`${name}.data`)), {
      everyMs: 1,
    });
    seconds.push((performance.now() - began) / 1000);
    await story.deleteVm(vm.metadata.name, 'Background');
    await story.claims.waitGone(`${name}.data`);
  }
  return seconds.sort((a, b) => a - b)[Math.floor(seconds.length / 2)]!;
}

/** Creates the n-th of many stopped VMs with two secondary networks on one NAD. */
export function createVm(story: Story, n: number): Promise<VirtualMachine> {
  return story.createVm(`vm${String(n)}`, { data: 'blue', backup: 'blue' }, { running: false });
}

/** Counts the claims of a story by a watch, which costs the API server very little. */
export class ClaimCounter {
  readonly #informer: Informer<IPAMClaim>;
  #count = 0;
  #check: () => void = () => undefined;

  /** @param isCounted default: all claims */
  constructor({ client, namespace }: Story, isCounted: (claim: IPAMClaim) => boolean = () => true) {
    const transform = ({ metadata: { name }, spec, status }: IPAMClaim): IPAMClaim => ({
      metadata: { name, namespace },
      spec,
      status: { ips: status?.ips ?? [] },
    });
    this.#informer = new Informer(client, IPAM_CLAIMS, { namespace, transform });
    this.#informer.onChange(({ type, object, before }) => {
      if (before !== undefined && isCounted(before)) this.#count--;
      if (type !== 'removed' && isCounted(object)) this.#count++;
      this.#check();
    });
    this.#informer.start();
  }

  /** Resolves once there are exactly `count` claims. */
  async reached(count: number): Promise<void> {
    await this.#informer.synced();
    await new Promise<void>((resolve) => {
      this.#check = () => {
        if (this.#count === count) resolve();
      };
      this.#check();
    });
  }

  stop(): Promise<void> {
    return this.#informer.stop();
  }
}

/** Measures the baseline: writes of the same claims under other names, with the controller's identity, while it is stopped. */
async function measureBareWrites(bed: BedWithHoldfast, { client, namespace }: Story) {
  await bed.controller.stop();
  const { items } = await client.list(IPAM_CLAIMS, { namespace });
  const copies = items.slice(0, CLAIMS).map((claim) => copyOf(claim));
  const kubeconfig = await bed.serviceAccountKubeconfig(HOLDFAST_NAMESPACE, 'holdfast-controller');
  const bare = new Client(new Transport(await loadCredentials({ kubeconfig })));
  const load = { count: copies.length, concurrency: CONCURRENCY };
  const create = await runLoad((n) => bare.create(IPAM_CLAIMS, copies[n]!).then(() => undefined), load);
  const remove = await runLoad(async (n) => {
    const ref = { namespace, name: copies[n]!.metadata.name };
    await bare.delete(IPAM_CLAIMS, ref);
    await bare.patch(IPAM_CLAIMS, ref, { type: 'merge', body: { metadata: { finalizers: [] } } });
  }, load);
  await bare.transport.close();
  await bed.controller.start();
  return { create: create.seconds, remove: remove.seconds };
}

function copyOf({ metadata, spec }: IPAMClaim): IPAMClaim {
  const { name, namespace = '', labels = {}, annotations = {}, finalizers = [], ownerReferences = [] } = metadata;
  return { metadata: { name: `floor-${name}`, namespace, labels, annotations, finalizers, ownerReferences }, spec };
}

async function timed(work: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await work();
  return (performance.now() - began) / 1000;
}
