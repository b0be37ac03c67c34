import type { AddressLease, LeaseWrite } from '../../api/address-lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { REUSE_MS } from '../../addressing/lease/lease-times.js';
import {
  type LeaseRequest,
  createLease,
  readLease,
  reallocateLease,
  releaseLease,
} from '../../addressing/lease/lease.js';
import type { Pod } from '../../api/pod.js';
import { ADDRESS_LEASES, NODES, PODS } from '../../kube/resources.js';
import type { ObjectTracker } from '../../kube/testing/object-tracker.js';
import { ordinaryPod } from './cluster.js';
import { writeObject } from '../../test/object-tracker/tracker-writes.js';

/** Each node runs so many pods, of which the oldest ends when one starts. */
const PODS_OF_NODE = 20;
const TICK_MS = 10;
const FIRST = parseAddress('10.0.0.10').value;
/** Events that a watch may ask for again. */
const COMPACT_MS = 30_000;

interface ChurnNode {
  readonly name: string;
  /** Names of leases, the oldest first. */
  readonly held: string[];
  /** Those that hold them. */
  readonly pods: Pod[];
  readonly released: { readonly name: string; readonly at: number }[];
}

export interface ChurnOptions {
  readonly nodes: number;
  /** Pods that start and end, per second. */
  readonly rate: number;
  readonly cooldownMs: number;
  /** Default: nodes allocate leases that they have released, as agents do. */
  readonly isReused?: boolean;
}

/** Pods of all nodes that start and end: the writes of their agents, made in the server itself. */
export class PodChurn {
  starts = 0;
  /** Starts that allocated a lease that the node had released. */
  reused = 0;
  released = 0;
  readonly #tracker: ObjectTracker;
  readonly #options: ChurnOptions;
  readonly #nodes: readonly ChurnNode[];
  #next = 0n;
  #pods = 0;

  constructor(tracker: ObjectTracker, options: ChurnOptions) {
    this.#tracker = tracker;
    this.#options = options;
    this.#nodes = Array.from({ length: options.nodes }, (_, n) => ({
      name: `node-${n}`,
      held: [],
      pods: [],
      released: [],
    }));
    tracker.put(NODES, ...this.#nodes.map(({ name }) => ({ metadata: { name } })));
    for (const node of this.#nodes) for (let pod = 0; pod < PODS_OF_NODE; pod++) this.#start(node);
    tracker.compact();
    tracker.observe(ADDRESS_LEASES, ({ type, object, before }) => {
      const [was, is] = [isReleased(before), type !== 'DELETED' && isReleased(object)];
      if (was !== is) this.released += is ? 1 : -1;
    });
  }

  /** Runs until the signal aborts. If the machine is too slow, starts are late. */
  async run(signal: AbortSignal): Promise<void> {
    const began = performance.now();
    let compactAt = began + COMPACT_MS;
    for (let done = 0; !signal.aborted;) {
      const due = Math.floor(((performance.now() - began) * this.#options.rate) / 1000);
      for (; done < due; done++) this.#replaceOne();
      if (performance.now() >= compactAt) {
        this.#tracker.compact();
        compactAt += COMPACT_MS;
      }
      await new Promise((resolve) => setTimeout(resolve, TICK_MS));
    }
  }

  #replaceOne(): void {
    const node = this.#nodes[this.starts++ % this.#nodes.length]!;
    const name = node.held.shift()!;
    const now = Date.now();
    this.#tracker.remove(PODS, node.pods.shift()!.metadata);
    this.#write(releaseLease(readLease(this.#tracker.get(ADDRESS_LEASES, { name })), now));
    node.released.push({ name, at: now });
    this.#start(node);
  }

  #start(node: ChurnNode): void {
    const request = this.#requestOf(node);
    const pod = ordinaryPod(request.owner, node.name);
    node.pods.push(pod);
    // created, bound, running with a report of Multus: the least that an API server tells
    this.#tracker.put(PODS, { ...pod, spec: {}, status: { phase: 'Pending' } });
    this.#tracker.put(PODS, { ...pod, status: { phase: 'Pending' } });
    this.#tracker.put(PODS, pod);
    const found = this.#options.isReused === false ? undefined : this.#takeCooled(node);
    if (found === undefined) {
      const address = { family: 4, value: FIRST + this.#next++ } as const;
      node.held.push(this.#write(createLease({ ...request, address })));
      return;
    }
    this.reused++;
    const lease = readLease(found);
    node.held.push(this.#write(reallocateLease(lease, { ...request, address: lease.address })));
  }

  #takeCooled({ released }: ChurnNode): AddressLease | undefined {
    const { cooldownMs } = this.#options;
    const now = Date.now();
    while (released[0] !== undefined && now - released[0].at >= cooldownMs) {
      const { name, at } = released.shift()!;
      const found = now - at < cooldownMs + REUSE_MS ? this.#tracker.find(ADDRESS_LEASES, { name }) : undefined;
      if (found !== undefined) return found;
    }
    return undefined;
  }

  #requestOf({ name: node }: ChurnNode) {
    const pod = `pod-${this.#pods++}`;
    const owner = { kind: 'Pod', namespace: `tenant-${this.#pods % 500}`, name: pod, uid: pod } as const;
    const request = { addressSpace: 'blue', pool: 'blue', owner, node, containerID: pod, interface: 'net1' };
    return request satisfies Omit<LeaseRequest, 'address'>;
  }

  #write(write: LeaseWrite): string {
    return writeObject(this.#tracker, ADDRESS_LEASES, write)!.metadata.name;
  }
}

function isReleased(lease: AddressLease | undefined): boolean {
  return lease?.spec.releasedAt !== undefined;
}
