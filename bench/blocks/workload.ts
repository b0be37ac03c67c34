import type { LeaseRecord } from '../../addressing/lease/lease.js';
import type { Random } from '../../kube/clock.js';
import { shuffle } from '../../test/seeded-random.js';
import type { SimulatedAgent } from './agent.js';
import type { VirtualTime } from './virtual-time.js';

/** Time after which a runtime repeats a failed ADD. */
const RETRY_MS = 10_000;
/** Time from the end of a pod until its replacement starts. */
const REPLACE_MS = 2_000;

interface BenchPod {
  readonly name: string;
  readonly node: number;
  lease: LeaseRecord | undefined;
}

export interface WorkloadDeps {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly agents: readonly SimulatedAgent[];
  /** Called with a released lease, which is deleted after its cool-down. */
  readonly freed: (lease: LeaseRecord) => void;
  readonly mostOfNode: number;
}

/** Pods that start, end and move on nodes with free capacity. */
export class Workload {
  readonly #deps: WorkloadDeps;
  readonly #pods: BenchPod[] = [];
  readonly #onNode: number[];
  #count = 0;
  waiting = 0;

  constructor(deps: WorkloadDeps) {
    this.#deps = deps;
    this.#onNode = deps.agents.map(() => 0);
  }

  /** Starts pods, evenly distributed over nodes and time. */
  wave(pods: number, lastsMs: number): void {
    const { time, random, agents } = this.#deps;
    const nodes = shuffle(
      Array.from({ length: pods }, (_, n) => n % agents.length),
      random,
    );
    nodes.forEach((node, n) => time.after((n * lastsMs) / pods, () => this.#start(node)));
  }

  /** Replaces random pods by new ones on other nodes, evenly distributed over the time. */
  churn(pods: number, lastsMs: number): void {
    for (let n = 0; n < pods; n++) this.#deps.time.after((n * lastsMs) / pods, () => this.#replace());
  }

  #replace(): void {
    const { time, random } = this.#deps;
    const index = Math.floor(random() * this.#pods.length);
    const pod = this.#pods[index];
    if (pod === undefined) return;
    this.#pods[index] = this.#pods.at(-1)!;
    this.#pods.pop();
    this.#end(pod);
    time.after(REPLACE_MS, () => this.#start(this.#anyNode()));
  }

  #anyNode(): number {
    const { random, agents, mostOfNode } = this.#deps;
    for (;;) {
      const node = Math.floor(random() * agents.length);
      if (this.#onNode[node]! < mostOfNode) return node;
    }
  }

  #start(node: number): void {
    const name = `pod-${++this.#count}`;
    this.#onNode[node]!++;
    this.waiting++;
    this.#add({ name, node, lease: undefined });
  }

  #add(pod: BenchPod): void {
    const { time, random, agents } = this.#deps;
    agents[pod.node]!.add(pod.name, (lease) => {
      if (lease === undefined) {
        time.after(RETRY_MS * (1 + random() / 2), () => this.#add(pod));
        return;
      }
      pod.lease = lease;
      this.waiting--;
      this.#pods.push(pod);
    });
  }

  #end({ node, lease }: BenchPod): void {
    this.#onNode[node]!--;
    this.#deps.agents[node]!.del(lease!, this.#deps.freed);
  }
}
