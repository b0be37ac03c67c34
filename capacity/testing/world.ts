import { AdvertisedCapacity } from '../advertised-capacity.js';
import type { Offer, PendingPodGroup } from '../offers.js';
import { type SharePlan, planShares } from '../shares.js';

/** One step is 100 ms. Delays of reads and writes are whole steps. */
const STEP_MS = 100;
const ROUND_STEPS = 4;
/** The longest delay of a watch. */
const LAG_STEPS = 8;
const SETTLE_MS = LAG_STEPS * STEP_MS;
/** From the deletion of a pod to its end: longer than a write and the delay of a watch. */
const GRACE_STEPS = 4 * LAG_STEPS + 2 * ROUND_STEPS;
const COOL_STEPS = 30;
const OFFER_TIMEOUT_MS = 3_000;

export interface SimulatedPod {
  readonly id: string;
  readonly requested: number;
  /** Where its selectors let it run. */
  readonly allowed: readonly string[];
  /** Where it cannot run for reasons that only the scheduler knows. */
  readonly unsuitable: readonly string[];
  node?: string;
  leases: number;
  endsAt?: number;
  /** Whether the scheduler found no node for the pod. */
  isUnschedulable: boolean;
}

/** All that is stored, at one step. */
interface ClusterSnapshot {
  readonly pods: readonly Readonly<SimulatedPod>[];
  readonly capacities: ReadonlyMap<string, number>;
  readonly free: number;
}

/** A simulated cluster with one pool: its API objects, a scheduler and agents that see them late, and the planner of shares. */
export class CapacityWorld {
  readonly nodes: readonly string[];
  readonly pods = new Map<string, SimulatedPod>();
  free: number;
  steps = 0;
  writes = 0;
  #cooling: { count: number; until: number }[] = [];
  #caps = new Map<string, number>();
  #arriving: { node: string; cap: number; at: number }[] = [];
  #history: ClusterSnapshot[] = [];
  readonly #advertised: Map<string, AdvertisedCapacity>;
  #offers: ReadonlyMap<string, Offer> = new Map();
  /** The step that each reader has seen. It never decreases. */
  readonly #sights = { scheduler: 0, nodes: 0, pods: 0, leases: 0 };
  readonly #random: (below: number) => number;
  #names = 0;

  constructor(nodes: number, addresses: number, random: (below: number) => number) {
    this.nodes = Array.from({ length: nodes }, (_, index) => `n${index}`);
    this.free = addresses;
    this.#random = random;
    this.#advertised = new Map(this.nodes.map((node) => [node, new AdvertisedCapacity(SETTLE_MS)]));
    this.#remember();
  }

  create(pod: Pick<SimulatedPod, 'requested' | 'allowed' | 'unsuitable'>): void {
    const id = `p${this.#names++}`;
    this.pods.set(id, { ...pod, id, leases: 0, isUnschedulable: false });
  }

  /** Announced, as a deletion with its grace is. */
  announceEnd(pod: SimulatedPod): void {
    pod.endsAt ??= this.steps + GRACE_STEPS;
  }

  /** At once, as a job that is done. */
  endAtOnce(pod: SimulatedPod): void {
    pod.endsAt = this.steps;
  }

  /** Allocates an address to a claim. */
  allocateToClaim(): void {
    if (this.free > 0) this.free--;
  }

  /** Addresses that bound pods wait for. */
  get missing(): number {
    return this.#bound().reduce((sum, { requested, leases }) => sum + requested - leases, 0);
  }

  /** Pending pods that could run with the free addresses. */
  get starving(): SimulatedPod[] {
    return [...this.pods.values()].filter(
      ({ node, requested, allowed, unsuitable }) =>
        node === undefined && requested <= this.free && allowed.some((name) => !unsuitable.includes(name)),
    );
  }

  step(): void {
    this.steps++;
    this.#end();
    this.#arrive();
    this.#schedule();
    this.#lease();
    this.#remember();
    if (this.steps % ROUND_STEPS === 0) this.#plan();
  }

  #bound(): SimulatedPod[] {
    return [...this.pods.values()].filter(({ node }) => node !== undefined);
  }

  #end(): void {
    for (const pod of [...this.pods.values()]) {
      if (pod.endsAt === undefined || pod.endsAt > this.steps) continue;
      this.pods.delete(pod.id);
      if (pod.leases > 0) this.#cooling.push({ count: pod.leases, until: this.steps + COOL_STEPS });
    }
    this.free += this.#cooling.filter(({ until }) => until <= this.steps).reduce((sum, { count }) => sum + count, 0);
    this.#cooling = this.#cooling.filter(({ until }) => until > this.steps);
  }

  #arrive(): void {
    for (const { node, cap } of this.#arriving.filter(({ at }) => at <= this.steps)) this.#caps.set(node, cap);
    this.#arriving = this.#arriving.filter(({ at }) => at > this.steps);
  }

  /** It knows pods as they are, for it binds them, and nodes as they were. */
  #schedule(): void {
    const { capacities } = this.#look('scheduler');
    for (const pod of this.pods.values()) {
      if (pod.node !== undefined || pod.endsAt !== undefined) continue;
      const fits = pod.allowed.filter((node) => {
        const used = this.#bound().reduce((sum, other) => sum + (other.node === node ? other.requested : 0), 0);
        return !pod.unsuitable.includes(node) && (capacities.get(node) ?? 0) - used >= pod.requested;
      });
      pod.isUnschedulable = fits.length === 0;
      if (fits.length > 0) pod.node = fits[this.#random(fits.length)] ?? '';
    }
  }

  #lease(): void {
    for (const pod of this.#bound()) {
      if (this.#random(3) > 0) continue;
      const taken = Math.min(this.free, pod.requested - pod.leases);
      this.free -= taken;
      pod.leases += taken;
    }
  }

  #remember(): void {
    const pods = [...this.pods.values()].map((pod) => ({ ...pod }));
    this.#history.push({ pods, capacities: new Map(this.#caps), free: this.free });
  }

  #look(who: 'scheduler' | 'nodes' | 'pods' | 'leases'): ClusterSnapshot {
    const last = this.#history.length - 1;
    this.#sights[who] = Math.max(this.#sights[who], last - this.#random(LAG_STEPS));
    const truth = this.#history[Math.max(0, this.#sights[who])];
    if (truth === undefined) throw new RangeError('nothing is remembered');
    return truth;
  }

  #plan(): void {
    const now = this.steps * STEP_MS;
    const { capacities } = this.#look('nodes');
    const version = resourceVersionOf(this.#sights.nodes);
    for (const node of this.nodes) this.#advertised.get(node)?.observe(capacities.get(node), version, now);
    const plan = this.#planOn(this.#look('pods'), this.#look('leases'), now);
    this.#offers = plan.offers;
    for (const [node, cap] of plan.capacities) {
      this.writes++;
      this.#advertised.get(node)?.beginWrite(cap, now);
      // a write takes no longer than a round, because a round waits for its writes
      const at = this.steps + 1 + this.#random(ROUND_STEPS - 1);
      this.#arriving.push({ node, cap, at });
      if (this.#random(5) > 0) this.#advertised.get(node)?.writeSucceeded(resourceVersionOf(at));
    }
  }

  #planOn({ pods }: ClusterSnapshot, { pods: leased, free }: ClusterSnapshot, now: number): SharePlan {
    const leases = new Map(leased.map((pod) => [pod.id, pod.leases]));
    const staying = pods.filter(({ node, endsAt }) => node !== undefined && endsAt === undefined);
    // one that is being deleted may be about to get its address anyway
    const bound = pods.filter(({ node }) => node !== undefined);
    const pending = bound.reduce((sum, { id, requested }) => sum + Math.max(0, requested - (leases.get(id) ?? 0)), 0);
    const waiting = groupsOf(
      pods.filter(({ node, isUnschedulable, endsAt }) => node === undefined && isUnschedulable && endsAt === undefined),
    );
    const leaving = pods.filter(({ node, endsAt }) => node !== undefined && endsAt !== undefined);
    const sumOn = (on: readonly SimulatedPod[], name: string) =>
      on.reduce((sum, { node, requested }) => sum + (node === name ? requested : 0), 0);
    return planShares({
      budget: free - pending,
      nodes: this.nodes.map((name) => {
        const advertised = this.#advertised.get(name);
        const expected = advertised?.expected;
        return {
          name,
          requested: sumOn(staying, name),
          leavingRequests: sumOn(leaving, name),
          ...(expected !== undefined && { expected }),
          highest: advertised?.highest(now) ?? 0,
          ownFree: 0,
          isUntainted: true,
        };
      }),
      shownElsewhere: 0,
      isRebalanceDue: this.steps % 100 === 0,
      waiting,
      offers: this.#offers,
      now,
      offerTimeoutMs: OFFER_TIMEOUT_MS,
    });
  }
}

function groupsOf(pods: readonly SimulatedPod[]): PendingPodGroup[] {
  const groups = new Map<string, PendingPodGroup>();
  for (const { requested, allowed } of pods) {
    const key = JSON.stringify([requested, allowed]);
    groups.set(key, { key, requested, nodes: allowed, pods: (groups.get(key)?.pods ?? 0) + 1 });
  }
  return [...groups.values()];
}

/** The resourceVersion of a write in a step. */
function resourceVersionOf(step: number): string {
  return String(1_000_000 + step);
}
