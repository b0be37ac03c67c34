import { expect } from 'chai';
import fc from 'fast-check';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import type { KubeObject } from '../api/meta.js';
import { CLAIM_REFERENCE_KEY } from '../api/names.js';
import { podInterfaceName } from '../api/pod.js';
import { Cache } from '../kube/informers/cache.js';
import type { Client } from '../kube/client.js';
import { type Clock, systemClock } from '../kube/clock.js';
import { Deadline } from '../kube/transport/deadline.js';
import { RequestTurns } from '../kube/transport/request-turns.js';
import { CONNECTIONS } from '../process/context.js';
import { CLAIM_WATCH } from '../cluster/watch-specs.js';
import { NAMESPACE, makeLauncherPod, makeVm, makeVmi, networksValue } from '../test/objects/kubevirt-objects.js';
import { VM1 } from '../test/objects/pod-review.js';
import { ManualClock } from '../test/manual-clock.js';
import { readPod } from './reviewed-pod.js';
import { PodReviewer } from './pod-reviewer.js';
import type { PodDecision } from './pod-decision.js';
import { BY_KUBEVIRT } from '../test/objects/launcher-pods.js';

const NAMESPACES = [NAMESPACE, 'other', 'a', 'b', 'c', 'd'];

/** A webhook whose caches know VM and VMI of each namespace, and nothing else. */
function reviewerOf(
  vmi: VirtualMachineInstance,
  find: Client['find'] = () => Promise.resolve(undefined),
  clock: Clock = systemClock,
) {
  const reads: string[] = [];
  const caches = { vmis: new Cache<VirtualMachineInstance>(), vms: new Cache<KubeObject>() };
  for (const namespace of NAMESPACES) {
    caches.vmis.set({ ...vmi, metadata: { ...vmi.metadata, namespace } });
    caches.vms.set({ metadata: { ...makeVm('vm1').metadata, namespace } });
  }
  const listers = { ...caches, claims: new Cache(CLAIM_WATCH.indexes), networks: new Cache(), namespaces: new Cache() };
  const subject = new PodReviewer({
    listers: listers as never,
    client: {
      find: (resource, ref, call) => {
        reads.push(`${resource.kind} ${ref.namespace ?? ''}/${ref.name}`);
        return find(resource, ref, call);
      },
    },
    gate: { isOpen: () => true },
    clock,
    onLiveRead: () => undefined,
  });
  const podOf = (value: string) => readPod(makeLauncherPod(vmi, value), 'object');
  const create = (value: string, namespace = NAMESPACE): Promise<PodDecision> =>
    subject.review({ operation: 'CREATE', namespace, pod: podOf(value), requester: BY_KUBEVIRT });
  const update = (before: string, after: string): Promise<PodDecision> =>
    subject.review({
      operation: 'UPDATE',
      namespace: NAMESPACE,
      pod: podOf(after),
      oldPod: podOf(before),
      requester: BY_KUBEVIRT,
    });
  return { create, update, reads };
}

function vmiWith(networks: number): VirtualMachineInstance {
  const names = Array.from({ length: networks }, (_, n) => `n${n}`);
  return makeVmi('vm1', Object.fromEntries(names.map((name) => [name, name])));
}

/** Finds nothing, with the connections of the process. @param latencyMs how long the API server takes for each read */
function slowFind(latencyMs: number, clock: ManualClock): Client['find'] {
  const turns = new RequestTurns(CONNECTIONS.webhook);
  return async (_resource, _ref, call) => {
    const deadline = new Deadline(clock);
    deadline.limit(call?.deadlineMs ?? Infinity, 'deadline');
    const send = () => deadline.race(clock.sleep(latencyMs));
    try {
      await turns.run({ method: 'GET', path: '', tenant: call?.tenant }, deadline, send);
    } catch (error) {
      throw deadline.error('GET') ?? error;
    } finally {
      deadline.clear();
    }
    return undefined;
  };
}

/** Reviews launchers at the same time, one in each namespace after the other. */
async function reviewAtOnce(
  reviews: number,
  { networks, latencyMs, namespaces = 1 }: { networks: number; latencyMs: number; namespaces?: number },
): Promise<PodDecision[]> {
  const clock = new ManualClock(0);
  const vmi = vmiWith(networks);
  const { create } = reviewerOf(vmi, slowFind(latencyMs, clock), clock);
  let decisions: PodDecision[] | undefined;
  const running = Array.from({ length: reviews }, (_, n) =>
    create(networksValue(vmi), NAMESPACES[n % namespaces] ?? NAMESPACE),
  );
  void Promise.all(running).then((all) => (decisions = all));
  while (decisions === undefined) {
    await new Promise(setImmediate);
    clock.advanceTo(clock.next ?? 0);
  }
  return decisions;
}

describe('the live reads of a review', () => {
  it('are none if the annotation has more elements than allowed', async () => {
    const { create, reads } = reviewerOf(VM1);
    const elements = Array.from({ length: 3_000 }, (_, n) => ({ name: `${n}` }));
    const verdict = await create(JSON.stringify(elements));
    expect(verdict).to.include({ allowed: false, check: 'annotation' });
    expect(verdict).to.have.property('reason').that.includes('more than 64 elements');
    expect(reads).to.deep.equal([]);
  });

  it('are one of the VMI if no element is a network of the VMI', async () => {
    const { create, update, reads } = reviewerOf(VM1);
    const element = (n: number) => ({ name: `n${n}`, namespace: `ns${n}`, interface: `net${n + 2}` });
    const elements = Array.from({ length: 64 }, (_, n) => ({ ...element(n), [CLAIM_REFERENCE_KEY]: `c${n}` }));
    await create(JSON.stringify(elements));
    expect(reads).to.deep.equal(['VirtualMachineInstance vms/vm1']);
    await update(JSON.stringify(elements), JSON.stringify(elements.slice(1)));
    expect(reads).to.deep.equal(['VirtualMachineInstance vms/vm1', 'VirtualMachineInstance vms/vm1']);
  });

  it("do not include a NAD that a tenant chose and that is not the network's", async () => {
    const { create, reads } = reviewerOf(VM1);
    await create(JSON.stringify([{ name: 'chosen', interface: podInterfaceName('data') }]));
    expect(reads).to.deep.equal(['VirtualMachineInstance vms/vm1']);
  });

  it('are at most two, and three more for each network of the VMI, whatever the pod’s annotation says', async () => {
    const names = ['n1', 'n2', 'n3', 'n4'];
    const element = fc.record(
      {
        name: fc.constantFrom('blue', 'green', 'x1', 'x2'),
        interface: fc.constantFrom(...names.map(podInterfaceName), 'net1', 'net2', 'net3', 'eth7', ''),
        [CLAIM_REFERENCE_KEY]: fc.constantFrom('vm1.n1', 'vm1.n2', 'a', 'b', 'c'),
      },
      { requiredKeys: ['name'] },
    );
    const annotation = fc
      .uniqueArray(element, { maxLength: 8, selector: (each) => each.interface ?? '' })
      .map((elements) => JSON.stringify(elements));
    const networks = fc.subarray(names).map((some) => Object.fromEntries(some.map((name) => [name, 'blue'])));
    await fc.assert(
      fc.asyncProperty(networks, annotation, annotation, async (given, before, after) => {
        const { create, update, reads } = reviewerOf(makeVmi('vm1', given));
        const most = 2 + 3 * Object.keys(given).length;
        await create(after);
        expect(reads.length).to.be.at.most(most);
        await update(before, after);
        expect(reads.length).to.be.at.most(2 * most);
      }),
    );
  });

  it('do not wait for those of another namespace that never end', async () => {
    const vmi = vmiWith(64);
    let stuck = 0;
    const find = (_resource: unknown, { namespace }: { namespace?: string | undefined }) => {
      if (namespace === 'other') return Promise.resolve(undefined);
      stuck++;
      return new Promise<never>(() => undefined);
    };
    // on a slow machine, the time of the reviews would be over before the first read
    const { create } = reviewerOf(vmi, find, { ...systemClock, now: () => 0 });
    const value = networksValue(vmi);
    for (let count = 0; count < 20; count++) void create(value);
    // the namespace's own queue is full: a tenant must not cause HoldfastWebhookFailing
    expect(await create(value)).to.include({ allowed: false, isUncertain: false });
    const verdict = await create(value.replaceAll(`"${NAMESPACE}"`, '"other"'), 'other');
    expect(verdict.allowed).to.equal(true);
    expect(stuck).to.equal(8);
  });

  it('take turns by the namespace of the pod, also if they read NADs of another one', async () => {
    const vmi = makeVmi('vm1', { data: 'other/blue' });
    const tenants = new Map<string, string | undefined>();
    const { create } = reviewerOf(vmi, (_resource, { namespace = '' }, call) => {
      tenants.set(namespace, call?.tenant);
      return Promise.resolve(undefined);
    });
    await create(networksValue(vmi));
    expect([...tenants]).to.deep.include(['other', NAMESPACE]);
  });

  it('do not count as unanswered while the API server answers in half a second, however many reviews wait', async () => {
    const load = fc.record({
      networks: fc.integer({ min: 1, max: 32 }),
      latencyMs: fc.nat({ max: 500 }),
      namespaces: fc.integer({ min: 1, max: NAMESPACES.length }),
    });
    const busy = { networks: 32, latencyMs: 400, namespaces: NAMESPACES.length };
    await fc.assert(
      fc.asyncProperty(fc.nat({ max: 60 }), load, async (reviews, given) => {
        const decisions = await reviewAtOnce(reviews, given);
        expect(decisions.filter(({ isUncertain }) => isUncertain)).to.deep.equal([]);
      }),
      { numRuns: 10, examples: [[60, busy]] },
    );
  });

  it('count as unanswered if the API server needs longer than the time of the review', async () => {
    const [decision] = await reviewAtOnce(1, { networks: 1, latencyMs: 2_001 });
    expect(decision).to.include({ allowed: false, isUncertain: true });
  });
});
