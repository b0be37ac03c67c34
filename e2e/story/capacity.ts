import { setTimeout as pause } from 'node:timers/promises';
import { capacityResource } from '../../api/capacity.js';
import type { PoolSubnet } from '../../api/address-pool.js';
import type { KubeObject } from '../../api/meta.js';
import { isTerminal } from '../../api/pod.js';
import { NODES, PODS } from '../../kube/resources.js';
import type { Resource } from '../../kube/resource.js';
import type { Story } from './story.js';
import { until, untilValue } from './wait.js';

interface Node extends KubeObject {
  status?: { allocatable?: Record<string, string> };
}
interface SeenEvent extends KubeObject {
  message?: string;
}
const EVENTS: Resource<SeenEvent> = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** What users and schedulers see of the free addresses of one pool. */
export class CapacityStory {
  readonly #story: Story;
  /** Of the pool: no other story uses it. */
  readonly name: string;
  readonly resource: string;

  constructor(story: Story) {
    this.#story = story;
    this.name = `${story.namespace}-pool`;
    this.resource = capacityResource(this.name);
  }

  /** Makes the pool, and the NAD `blue` whose network it serves. */
  async pool(subnets: PoolSubnet[]): Promise<void> {
    const network = await this.#story.addresses.network('blue', []);
    await this.#story.addresses.pool(this.name, { network, subnets, publishCapacity: true });
  }

  /** Waits until nodes show so many, all together; undefined: until none shows any key. */
  async shown(count: number | undefined): Promise<void> {
    await untilValue(
      `nodes to show ${count ?? 'nothing'}`,
      () => this.total(),
      (total) => total === count,
    );
  }

  /** What all nodes show together. */
  async total(): Promise<number | undefined> {
    const counts = (await this.#nodes()).flatMap(({ status }) => status?.allocatable?.[this.resource] ?? []);
    return counts.length === 0 ? undefined : counts.reduce((sum, count) => sum + Number(count), 0);
  }

  /** What a node shows. @param write is written there first, as a stranger does it */
  async on(name: string, write?: string): Promise<string | undefined> {
    const { client } = this.#story;
    if (write !== undefined) {
      const counts = { [this.resource]: write };
      const body = { status: { capacity: counts, allocatable: counts } };
      await client.patch(NODES, { name }, { type: 'merge', body }, { subresource: 'status' });
    }
    return ((await client.get(NODES, { name })) as Node).status?.allocatable?.[this.resource];
  }

  /** Waits until so many pods run, and all others know that there is no more. @returns names, sorted */
  async split(running: number): Promise<{ running: string[]; waiting: string[] }> {
    return untilValue(
      `${running} pods to run`,
      () => this.#look(),
      (look) => look.running.length === running,
      { timeoutMs: 60_000 },
    );
  }

  /** Waits until the scheduler has said of a pod that there are too few. */
  async insufficient(pod: string): Promise<void> {
    await until(`${pod} to wait for ${this.resource}`, async () => {
      const { status, spec } = await this.#story.client.get(PODS, this.#story.ref(pod));
      const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled') as
        { message?: string } | undefined;
      return !spec?.nodeName && condition?.message?.includes(`Insufficient ${this.resource}`) === true;
    });
  }

  /** What kubelets say of pods that get no sandbox. */
  async failures(): Promise<string[]> {
    const fieldSelector = 'reason=FailedCreatePodSandBox';
    const { items } = await this.#story.client.list(EVENTS, { namespace: this.#story.namespace, fieldSelector });
    return items.map(({ message = '' }) => message);
  }

  onlyOn(node: string): object {
    const term = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [node] }] };
    return { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [term] } } };
  }

  /** Waits until a pod runs; the failure says what was in its way. */
  async runs(pod: string, timeoutMs: number): Promise<void> {
    await until(
      `${pod} to run`,
      async () => {
        const { status, spec } = await this.#story.client.get(PODS, this.#story.ref(pod));
        if (status?.phase === 'Running') return true;
        throw new Error(JSON.stringify([spec?.nodeName, status, await this.failures()]));
      },
      { timeoutMs },
    );
  }

  /** Looks at nodes all the time, meanwhile. @returns what was seen of one that showed none, or no key */
  async watched(act: () => Promise<void>): Promise<string[]> {
    const low: string[] = [];
    const over = new AbortController();
    const looking = this.#watch(low, over.signal);
    try {
      await act();
    } finally {
      over.abort();
      await looking;
    }
    return low;
  }

  async #watch(low: string[], signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const nodes = await this.#nodes().catch(() => []);
      for (const { metadata, status } of nodes) {
        const count = status?.allocatable?.[this.resource];
        if (count === undefined || count === '0') low.push(`${metadata.name}: ${count ?? 'no key'}`);
      }
      await pause(20);
    }
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
