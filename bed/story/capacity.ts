import { setTimeout as pause } from 'node:timers/promises';
import { capacityResource } from '../../api/capacity.js';
import type { AddressPoolSpec, PoolSubnet } from '../../api/address-pool.js';
import type { KubeObject } from '../../api/meta.js';
import { LEASE_POOL } from '../../api/names.js';
import { isTerminal } from '../../api/pod.js';
import { requestsOf } from '../../capacity/pod-record.js';
import { ADDRESS_LEASES, NODES, PODS } from '../../kube/resources.js';
import { BlockStory, isIn } from './blocks.js';
import { EVENTS } from './events.js';
import type { Story } from './story.js';
import { until, untilValue } from '../processes/wait.js';

interface Node extends KubeObject {
  status?: { allocatable?: Record<string, string> };
}

/** Shorter than the --publish-interval of the bed, after which a wrong value may be corrected. */
const LOOK_EVERY_MS = 100;

/** Reads the advertised capacity of one pool, and compares it with its free addresses. */
export class CapacityStory {
  readonly #story: Story;
  /** Name of the pool, which no other test uses. */
  readonly name: string;
  readonly resource: string;

  constructor(story: Story) {
    this.#story = story;
    this.name = `${story.namespace}-pool`;
    this.resource = capacityResource(this.name);
  }

  /** Creates the pool, and the NAD `blue` of its network. */
  async createPool(subnets: PoolSubnet[], more: Pick<AddressPoolSpec, 'blockSize'> = {}): Promise<void> {
    const network = await this.#story.addresses.createNetwork('blue', []);
    await this.#story.addresses.createPool(this.name, { network, subnets, publishCapacity: true, ...more });
  }

  /** Waits until the sum over all nodes is `count`; undefined: until no node has the resource. */
  async waitForTotal(count: number | undefined): Promise<void> {
    await untilValue(
      `nodes to advertise ${count ?? 'nothing'}`,
      () => this.total(),
      (total) => total === count,
    );
  }

  /** The sum over all nodes. */
  async total(): Promise<number | undefined> {
    const counts = (await this.#nodes()).flatMap(({ status }) => status?.allocatable?.[this.resource] ?? []);
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + Number(count), 0);
  }

  /** The capacity of a node. @param write is written to the node first, by another writer than Holdfast */
  async onNode(name: string, write?: string): Promise<string | undefined> {
    const { client } = this.#story;
    if (write !== undefined) {
      const counts = { [this.resource]: write };
      const body = { status: { capacity: counts, allocatable: counts } };
      await client.patch(NODES, { name }, { type: 'merge', body }, { subresource: 'status' });
    }
    return ((await client.get(NODES, { name })) as Node).status?.allocatable?.[this.resource];
  }

  /** Waits until this many pods run. @returns sorted names of running and waiting pods */
  async waitForRunning(running: number): Promise<{ running: string[]; waiting: string[] }> {
    return untilValue(
      `${running} pods to run`,
      () => this.#look(),
      (look) => look.running.length === running,
      { timeoutMs: 60_000 },
    );
  }

  /** Waits until the scheduler reports insufficient capacity for a pod. */
  async waitForInsufficient(pod: string): Promise<void> {
    await until(`${pod} to wait for ${this.resource}`, async () => {
      const { status, spec } = await this.#story.client.get(PODS, this.#story.ref(pod));
      const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled') as
        | { message?: string }
        | undefined;
      return !spec?.nodeName && condition?.message?.includes(`Insufficient ${this.resource}`) === true;
    });
  }

  /** Messages of kubelets about sandboxes that could not be created. */
  async sandboxFailures(): Promise<string[]> {
    const fieldSelector = 'reason=FailedCreatePodSandBox';
    const { items } = await this.#story.client.list(EVENTS, { namespace: this.#story.namespace, fieldSelector });
    return items.map(({ message = '' }) => message);
  }

  affinityTo(node: string): object {
    const term = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] };
    return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } };
  }

  /** Waits until a pod runs. The error names the obstacles. */
  async waitForPod(pod: string, timeoutMs: number): Promise<void> {
    await until(
      `${pod} to run`,
      async () => {
        const { status, spec } = await this.#story.client.get(PODS, this.#story.ref(pod));
        if (status?.phase === 'Running') return true;
        throw new Error(JSON.stringify([spec?.nodeName, status, await this.sandboxFailures()]));
      },
      { timeoutMs },
    );
  }

  /** Watches nodes while `act` runs. @returns each observation of a node with no or zero capacity */
  missingCapacityDuring(act: () => Promise<void>): Promise<string[]> {
    return observeDuring(act, async () => {
      const counts = (await this.#nodes()).map(({ metadata, status }) => ({
        name: metadata.name,
        count: status?.allocatable?.[this.resource],
      }));
      return counts.flatMap(({ name, count }) =>
        count === undefined || count === '0' ? [`${name}: ${count ?? 'no key'}`] : [],
      );
    });
  }

  /**
   * Watches nodes while `act` runs, in which no pod may end.
   * @param addresses all addresses of the pool
   * @returns each observation of nodes that advertise more than is free
   */
  excessCapacityDuring(addresses: readonly string[], act: () => Promise<void>): Promise<string[]> {
    return observeDuring(act, async () => {
      // free addresses only become fewer, so counting them first never counts too few
      const { total } = await this.freeAddresses(addresses);
      const shares = await this.shares();
      return sumOf(shares) > total ? [`${JSON.stringify([...shares])} of ${total}`] : [];
    });
  }

  /** Counts the free addresses of the pool: all of them, and those in the blocks of each node. */
  async freeAddresses(addresses: readonly string[]): Promise<{ total: number; own: Map<string, number> }> {
    const { client } = this.#story;
    const leases = await client.list(ADDRESS_LEASES, { labelSelector: `${LEASE_POOL}=${this.name}` });
    const taken = new Set(leases.items.map(({ spec }) => spec.address));
    const left = addresses.filter((address) => !taken.has(address));
    const own = new Map<string, number>();
    for (const { spec } of await new BlockStory(client, this.name).all()) {
      const inBlock = left.filter((address) => isIn(address, [spec.cidr])).length;
      own.set(spec.node, (own.get(spec.node) ?? 0) + inBlock);
    }
    return { total: left.length, own };
  }

  /** By node: its capacity minus the requests of its pods. Pods that start meanwhile make it too low, never too high. */
  async shares(): Promise<Map<string, number>> {
    const nodes = await this.#nodes();
    const pods = (await this.#story.client.list(PODS, { namespace: this.#story.namespace })).items;
    const requested = (node: string) =>
      pods
        .filter((pod) => pod.spec?.nodeName === node && !isTerminal(pod))
        .reduce((sum, { spec }) => sum + (requestsOf(spec).get(this.resource) ?? 0), 0);
    return new Map(
      nodes.map(({ metadata: { name }, status }) => {
        const shown = Number(status?.allocatable?.[this.resource] ?? 0);
        return [name, Math.max(0, shown - requested(name))];
      }),
    );
  }

  async #look(): Promise<{ running: string[]; waiting: string[] }> {
    const { items } = await this.#story.client.list(PODS, { namespace: this.#story.namespace });
    const living = items.filter((pod) => !isTerminal(pod) && pod.metadata.deletionTimestamp === undefined);
    const names = (runs: boolean) =>
      living.filter(({ status }) => (status?.phase === 'Running') === runs).map(({ metadata }) => metadata.name);
    return { running: names(true).sort(), waiting: names(false).sort() };
  }

  async #nodes(): Promise<Node[]> {
    return (await this.#story.client.list(NODES)).items;
  }
}

/** Repeats `look` while `act` runs. @returns all results */
async function observeDuring(act: () => Promise<void>, look: () => Promise<string[]>): Promise<string[]> {
  const found: string[] = [];
  const over = new AbortController();
  const looking = (async () => {
    while (!over.signal.aborted) {
      // the API server may be down
      found.push(...(await look().catch(() => [])));
      await pause(LOOK_EVERY_MS);
    }
  })();
  try {
    await act();
  } finally {
    over.abort();
    await looking;
  }
  return found;
}

export function sumOf(counts: ReadonlyMap<string, number>): number {
  return [...counts.values()].reduce((sum, count) => sum + count, 0);
}
