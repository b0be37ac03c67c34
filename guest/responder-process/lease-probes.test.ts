import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_GUEST_MAC, PROBE_ANNOTATION } from '../../api/names.js';
import { readLease } from '../../addressing/lease/lease.js';
import { Cache } from '../../kube/informers/cache.js';
import type { Client } from '../../kube/client.js';
import { TransportError } from '../../kube/errors.js';
import { silentLogger } from '../../kube/log.js';
import { apiError } from '../../test/api-errors.js';
import { type LeaseOptions, leaseOf } from '../../test/objects/lease-objects.js';
import { ManualClock } from '../../test/manual-clock.js';
import { claim, vmReference } from '../../test/objects/workload-objects.js';
import { requestedProbes } from '../responder-tables/requested-probes.js';
import { BY_PROBED_POOL, probedPoolOf } from '../watch-specs.js';
import { LeaseProbes } from './lease-probes.js';

const STRANGER = '02:00:00:00:00:99';
const GUEST = '02:00:00:00:00:0a';

/** The API server, what `guest` publishes, and the helper of one responder. */
class Scene {
  readonly leases = new Cache({ [BY_PROBED_POOL]: probedPoolOf });
  readonly claims = new Cache<IPAMClaim>();
  readonly questions: { address: string; expected: readonly string[]; answer: (macs?: string[]) => void }[] = [];
  readonly written: unknown[] = [];
  readonly results: string[] = [];
  failure: Error | undefined;
  readonly #clock = new ManualClock(0);
  readonly #probes: LeaseProbes;

  constructor() {
    const patch = (_: unknown, { name }: { name: string }, { body }: { body: object }) => {
      if (this.failure !== undefined) return Promise.reject(this.failure);
      this.written.push({ name, ...body });
      return Promise.resolve({});
    };
    this.#probes = new LeaseProbes({
      client: { patch } as unknown as Client,
      session: {
        probe: (address, expected) =>
          new Promise((answer) => this.questions.push({ address, expected, answer: (macs) => answer(macs) })),
      },
      metrics: { probed: (result) => this.results.push(result) },
      clock: this.#clock,
      log: silentLogger,
    });
  }

  /** A table follows the lease. */
  show(lease: AddressLease): void {
    this.leases.set(readLease(lease));
    this.#probes.request(requestedProbes('blue', this.leases, this.claims));
  }

  /** The last question gets its answer. */
  async answer(...macs: string[]): Promise<void> {
    this.questions.at(-1)?.answer(macs);
    await settled();
  }

  /** The helper cannot ask the last question. */
  async fail(): Promise<void> {
    this.questions.at(-1)?.answer();
    await settled();
  }

  /** The time comes in which a probe that failed is tried again. */
  async pass(): Promise<void> {
    this.#clock.advanceTo(this.#clock.now() + 500);
    await settled();
  }
}

function lease(address: string, version: number, state?: string, options: LeaseOptions = {}): AddressLease {
  const made = leaseOf(address, version, options);
  if (state !== undefined) made.metadata.annotations = { [PROBE_ANNOTATION]: state };
  return made;
}

const settled = () => new Promise((resolve) => setImmediate(resolve));
const probeOf = (written: unknown) =>
  (written as { metadata: { annotations: Record<string, string> } }).metadata.annotations[PROBE_ANNOTATION];

describe('the probes of leases', () => {
  let scene: Scene;
  beforeEach(() => {
    scene = new Scene();
  });

  const answers = [
    { name: 'nobody has the address', macs: [], state: 'free' },
    { name: 'another host has the address', macs: [STRANGER], state: `taken ${STRANGER}` },
    { name: 'the guest itself has the address', macs: [GUEST], state: 'self' },
    { name: 'the guest and another host have the address', macs: [GUEST, STRANGER], state: `taken ${STRANGER}` },
  ];
  for (const { name, macs, state } of answers) {
    it(`write for the version of the lease that ${name}`, async () => {
      const owner = claim({ name: 'c1', owner: vmReference('vm-uid', 'vm1') });
      owner.metadata = { ...owner.metadata, namespace: 'a', annotations: { [CLAIM_GUEST_MAC]: GUEST } };
      scene.claims.set(owner);
      scene.show(lease('10.0.0.2', 7, 'requested'));
      expect(scene.questions).to.have.length(1);
      expect(scene.questions[0]).to.deep.include({ address: '10.0.0.2', expected: [GUEST] });
      await scene.answer(...macs);
      const metadata = { uid: 'u1', resourceVersion: '7', annotations: { [PROBE_ANNOTATION]: state } };
      expect(scene.written).to.deep.equal([{ name: 'blue.10-0-0-2', metadata }]);
      expect(scene.results).to.deep.equal([state.split(' ')[0]]);
    });
  }

  it('expect no host if the claim is another one of its name', async () => {
    const other = claim({ name: 'c1' });
    other.metadata = { ...other.metadata, namespace: 'a', uid: 'other', annotations: { [CLAIM_GUEST_MAC]: GUEST } };
    scene.claims.set(other);
    scene.show(lease('10.0.0.2', 7, 'requested'));
    await scene.answer(GUEST);
    expect(scene.written.map(probeOf)).to.deep.equal([`taken ${GUEST}`]);
  });

  const ignored = [
    { name: 'is not to be probed', made: lease('10.0.0.2', 7) },
    { name: 'has been probed', made: lease('10.0.0.2', 7, 'free') },
    { name: 'was released', made: lease('10.0.0.2', 7, 'requested', { releasedAt: 1 }) },
  ];
  for (const { name, made } of ignored) {
    it(`do not ask for the address of a lease that ${name}`, () => {
      scene.show(made);
      expect(scene.questions).to.deep.equal([]);
    });
  }

  it('ask once although the lease changes meanwhile', () => {
    for (const version of [7, 8]) scene.show(lease('10.0.0.2', version, 'requested'));
    expect(scene.questions).to.have.length(1);
  });

  it('leave the result of another responder as it is', async () => {
    scene.show(lease('10.0.0.2', 7, 'requested'));
    scene.show(lease('10.0.0.2', 8, 'free'));
    scene.failure = apiError(409, 'Conflict', 'changed', 'blue.10-0-0-2');
    await scene.answer(STRANGER);
    expect([scene.questions.length, scene.results]).to.deep.equal([1, []]);
  });

  it('ask again if something else of the lease changed meanwhile', async () => {
    scene.show(lease('10.0.0.2', 7, 'requested'));
    scene.show(lease('10.0.0.2', 8, 'requested'));
    scene.failure = apiError(409, 'Conflict', 'changed', 'blue.10-0-0-2');
    await scene.answer();
    scene.failure = undefined;
    await scene.answer();
    expect(scene.written).to.have.length(1);
    expect(scene.written[0]).to.have.nested.property('metadata.resourceVersion', '8');
  });

  it('ask again until the helper can ask, as when the helpers of both responders start again together', async () => {
    scene.show(lease('10.0.0.2', 7, 'requested'));
    for (const tries of [2, 3, 4, 5]) {
      await scene.fail();
      await scene.pass();
      expect(scene.questions).to.have.length(tries);
    }
    await scene.answer(STRANGER);
    expect([scene.written.map(probeOf), scene.results]).to.deep.equal([[`taken ${STRANGER}`], ['taken']]);
  });

  it('end without a result if the helper cannot ask for as long as ipam waits', async () => {
    scene.show(lease('10.0.0.2', 7, 'requested'));
    for (let tries = 0; tries < 20; tries++) {
      await scene.fail();
      await scene.pass();
    }
    expect([scene.questions.length, scene.written, scene.results]).to.deep.equal([6, [], ['failed']]);
  });

  it('do not ask a second time if ipam did not wait any longer', async () => {
    scene.show(lease('10.0.0.2', 7, 'requested'));
    await scene.fail();
    scene.show(lease('10.0.0.2', 8, 'skipped'));
    await scene.pass();
    expect([scene.questions.length, scene.results]).to.deep.equal([1, ['failed']]);
  });

  const failures = [
    new TransportError('broken', 'the connection broke'),
    apiError(503, 'ServiceUnavailable', 'no', 'blue.10-0-0-2'),
  ];
  for (const failure of failures) {
    it(`write a second time, without a second question, after "${failure.message}"`, async () => {
      scene.show(lease('10.0.0.2', 7, 'requested'));
      scene.failure = failure;
      await scene.answer(STRANGER);
      scene.failure = undefined;
      await scene.pass();
      expect([scene.questions.length, scene.written.map(probeOf)]).to.deep.equal([1, [`taken ${STRANGER}`]]);
      expect(scene.results).to.deep.equal(['taken']);
    });
  }

  it('do not write a second time if the first write was carried out', async () => {
    scene.show(lease('10.0.0.2', 7, 'requested'));
    scene.failure = failures[0];
    await scene.answer();
    scene.failure = undefined;
    scene.show(lease('10.0.0.2', 8, 'free'));
    await scene.pass();
    expect([scene.questions.length, scene.written]).to.deep.equal([1, []]);
  });

  it('do not write a second time if the API server refuses', async () => {
    scene.show(lease('10.0.0.2', 7, 'requested'));
    scene.failure = apiError(403, 'Forbidden', 'no', 'blue.10-0-0-2');
    await scene.answer();
    scene.failure = undefined;
    await scene.pass();
    expect([scene.written, scene.results]).to.deep.equal([[], ['failed']]);
  });

  it('are as many at one time as the helper accepts, and the others follow in the order of their requests', async () => {
    const address = (index: number) => `10.0.${index >> 8}.${index & 0xff}`;
    for (let index = 0; index < 300; index++) scene.show(lease(address(index), 7, 'requested'));
    const first = scene.questions.length;
    expect(first).to.be.within(200, 256);
    // answered by another responder while it waited
    scene.show(lease(address(first), 8, 'free'));
    for (const { answer } of scene.questions.slice(0, 2)) answer([]);
    await settled();
    await settled();
    expect(scene.questions.slice(first).map((each) => each.address)).to.deep.equal([
      address(first + 1),
      address(first + 2),
    ]);
  });
});
