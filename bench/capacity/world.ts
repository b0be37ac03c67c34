import { capacityResource } from '../../api/capacity.js';
import type { KubeObject } from '../../api/meta.js';
import { type NodeRecord, toNodeRecord } from '../../capacity/node-record.js';
import type { CapacityInputs } from '../../capacity/observe.js';
import type { PodRecord } from '../../capacity/pod-record.js';
import { Inventory } from '../../capacity/inventory.js';
import { type BlockRecord, readBlock, blockName } from '../../addressing/block/block.js';
import { formatCidr, networkOf } from '../../addressing/address/cidr.js';
import { formatAddress, parseAddress } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import type { Pool } from '../../addressing/pool/pool.js';
import type { Random } from '../../kube/clock.js';
import { compiledPool } from '../../test/objects/lease-objects.js';
import { seededRandom, shuffle } from '../../test/seeded-random.js';
import { uuid } from '../uuid.js';

export interface CapacityBenchOptions {
  readonly nodes: number;
  readonly pools: number;
  readonly hasBlocks: boolean;
}

/** Pods that request one address of one pool. Bound pods have it, and most are attached. */
const PODS = 50_000;
const STARTING = 500;
/** Pending pods, in as many deployments as there are kinds. */
const WAITING = 300;
const KINDS = 30;
/** Released sticky leases; one in a hundred still cools down. */
const RELEASED = 20_000;
const BLOCK = { prefixLength: 28, size: 16 };
/** Size of a pool as a multiple of its used, sticky and lent addresses. */
const ROOM = 1.25;
const FIRST = parseAddress('10.0.0.0').value;
const HOUR_MS = 3_600_000;
const RANDOM_SEED = 20_260_101;
export const BEGIN = Date.UTC(2026, 0, 1);

/** A big cluster as input of `holdfast capacity`. */
export class CapacityBenchWorld {
  readonly pools: Pool[] = [];
  readonly pods: PodRecord[] = [];
  readonly stock = new Inventory();
  readonly #blocks = new Map<string, BlockRecord[]>();
  readonly #nodes = new Map<string, NodeRecord>();
  readonly #counts = new Map<string, Record<string, string>>();
  readonly #random: Random = seededRandom(RANDOM_SEED);
  #version = 1;

  constructor({ nodes, pools, hasBlocks }: CapacityBenchOptions) {
    for (let n = 0; n < nodes; n++) this.patch(`node-${n}`, {});
    const names = [...this.#nodes.keys()];
    for (let n = 0; n < pools; n++) {
      const [pods, released] = [PODS, RELEASED].map((count) => Math.round(count / pools)) as [number, number];
      const bound = Array.from({ length: pods }, () => names[Math.floor(this.#random() * nodes)]!);
      this.#fill(`pool-${n}`, { bound, released, hasBlocks });
    }
    for (let n = 0; n < WAITING; n++) this.#wait(n, pools);
  }

  sight(now: number): CapacityInputs {
    const { pools, pods, stock } = this;
    const blocksOf: CapacityInputs['blocksOf'] = ({ name }) => this.#blocks.get(name) ?? [];
    return {
      pools,
      pods,
      inventory: stock,
      nodes: [...this.#nodes.values()],
      blocksOf,
      now,
      maxStalenessMs: 30_000,
      attachedBefore: 1,
    };
  }

  /** Patches a node, as the API server would, and updates the cached record. */
  patch(name: string, counts: Readonly<Record<string, string | null>>): KubeObject {
    const kept = Object.entries({ ...this.#counts.get(name), ...counts });
    const shown = Object.fromEntries(kept.filter((entry): entry is [string, string] => entry[1] !== null));
    this.#counts.set(name, shown);
    const zone = `zone-${this.#nodes.size % 3}`;
    const labels = this.#nodes.get(name)?.traits.labels ?? { 'kubernetes.io/hostname': name, zone };
    const metadata = { name, uid: `${name}-uid`, resourceVersion: String(this.#version++), labels };
    const node = { metadata, status: { capacity: shown, allocatable: shown } };
    this.#nodes.set(name, toNodeRecord(node));
    return node;
  }

  #fill(pool: string, { bound, released, hasBlocks }: { bound: string[]; released: number; hasBlocks: boolean }): void {
    const { offsets, size } = hasBlocks ? this.#lend(pool, bound) : this.#scatter(bound.length, released);
    this.pools.push(poolOf(pool, size));
    const taken = new Set(offsets);
    for (const [index, node] of bound.entries()) {
      const uid = uuid(this.pods.length);
      this.pods.push(podOf(uid, pool, { node, ...(index % (PODS / STARTING) !== 0 && { attachedAt: 0 }) }));
      this.#lease(pool, offsets[index]!, { pod: uid });
    }
    const free = Array.from({ length: size }, (_, offset) => offset).filter((offset) => !taken.has(offset));
    const left = shuffle(free, this.#random);
    for (const [index, offset] of left.slice(0, released).entries()) {
      this.#lease(pool, offset, { releasedAt: BEGIN - (index % 100 === 0 ? 0 : HOUR_MS) });
    }
  }

  #scatter(pods: number, released: number): { offsets: number[]; size: number } {
    const size = Math.ceil(ROOM * (pods + released));
    const all = shuffle(
      Array.from({ length: size }, (_, offset) => offset),
      this.#random,
    );
    return { offsets: all.slice(0, pods), size };
  }

  /** Lends each node the blocks that its pods need. */
  #lend(pool: string, bound: readonly string[]): { offsets: number[]; size: number } {
    const unused = new Map<string, number[]>();
    const blocks: BlockRecord[] = [];
    const offsets = bound.map((node) => {
      const own = unused.get(node) ?? [];
      unused.set(node, own);
      if (own.length === 0) {
        const first = blocks.length * BLOCK.size;
        blocks.push(blockOf(pool, node, first));
        own.push(...shuffle(Array.from({ length: BLOCK.size }, (_, n) => first + n), this.#random)); // oxfmt-ignore
      }
      return own.pop()!;
    });
    this.#blocks.set(pool, blocks);
    return { offsets, size: Math.ceil(ROOM * blocks.length) * BLOCK.size };
  }

  #lease(pool: string, offset: number, more: { pod: string } | { releasedAt: number }): void {
    const address = { family: 4, value: FIRST + BigInt(offset) } as const;
    this.stock.add({ ...address, name: leaseName(pool, address), space: pool, pool, ...more });
  }

  #wait(n: number, pools: number): void {
    const kind = n % KINDS;
    const nodeSelector: Record<string, string> = kind % 2 === 0 ? {} : { zone: `zone-${kind % 3}` };
    const tolerations = kind % 5 === 0 ? [{ key: 'dedicated', operator: 'Exists', value: '', effect: '' }] : [];
    const namespace = `tenant-${kind}`;
    const needs = { nodeSelector, tolerations };
    this.pods.push(podOf(uuid(this.pods.length), `pool-${kind % pools}`, { namespace, constraints: needs }));
  }
}

function podOf(uid: string, pool: string, given: Partial<PodRecord>): PodRecord {
  const requests = new Map([[capacityResource(pool), 1]]);
  return { uid, namespace: 'tenant', requests, isLeaving: false, ...given };
}

function blockOf(pool: string, node: string, offset: number): BlockRecord {
  const cidr = networkOf({ family: 4, value: FIRST + BigInt(offset) }, BLOCK.prefixLength);
  const name = blockName(pool, cidr);
  const metadata = { name, uid: name, resourceVersion: '1' };
  return readBlock({ metadata, spec: { pool, cidr: formatCidr(cidr), node } });
}

function poolOf(name: string, size: number): Pool {
  const last = formatAddress({ family: 4, value: FIRST + BigInt(size - 1) });
  const subnets = [{ cidr: '10.0.0.0/12', ranges: [`10.0.0.0-${last}`] }];
  return compiledPool({ network: name, subnets, stickyMAC: { ttl: '24h' }, publishCapacity: true }, name);
}
