import type { BlockWrite } from '../../../../api/address-block.js';
import type { LeaseWrite } from '../../../../api/address-lease.js';
import type { BlockPolicy } from '../../observed-pool.js';
import { BITS, type Family } from '../../../../addressing/address/address.js';
import { type BlockRecord, readBlock } from '../../../../addressing/block/block.js';
import { type LeaseRecord, readLease } from '../../../../addressing/lease/lease.js';
import { StatusError } from '../../../../kube/errors.js';
import type { KubeObject } from '../../../../api/meta.js';
import type { Cache } from '../../../../kube/informers/cache.js';
import type { WatchSpec } from '../../../../kube/informers/informers.js';
import type { Resource } from '../../../../kube/resource.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES, ADDRESS_POOLS, NODES as NODE_RESOURCE } from '../../../../kube/resources.js';
import { LaggingInformer } from '../../../../kube/testing/lagging-informer.js';
import { ObjectTracker } from '../../../../kube/testing/object-tracker.js';
import { compiledPool } from '../../../../test/objects/lease-objects.js';
import { writeObject } from '../../../../test/object-tracker/tracker-writes.js';
import { BlockChecker, type Writer } from './block-checker.js';
import type { ModelNode, ModelPool } from './model-objects.js';

export const POLICY: BlockPolicy = { minFree: 1, maxFree: 5, excessDelayMs: 180_000 };
export const NODES = ['n1', 'n2', 'n3'] as const;
export const POOL_SHAPES = ['usual', 'narrow', 'fine', 'coarse'] as const;
export type PoolShape = (typeof POOL_SHAPES)[number];

/** Both families have equally many addresses. IPv6 addresses differ in bits beyond the precision of numbers. */
const SUBNETS: Readonly<Record<Family, { cidr: string; narrow: string }>> = {
  4: { cidr: '10.0.0.0/27', narrow: '10.0.0.1-10.0.0.13' },
  6: { cidr: 'fd00::a:ffff:ffe0/123', narrow: 'fd00::a:ffff:ffe1-fd00::a:ffff:ffed' },
};

/** The number of host bits of a block. */
const BLOCK_BITS: Readonly<Record<PoolShape, number>> = { usual: 2, narrow: 2, fine: 1, coarse: 3 };

/** How large the blocks of a pool of this shape are. */
export function blockSizeOf(shape: PoolShape, family: Family): number {
  return BITS[family] - BLOCK_BITS[shape];
}

export const WATCHED = {
  blocks: { resource: ADDRESS_BLOCKS, transform: readBlock },
  leases: { resource: ADDRESS_LEASES, transform: readLease },
  nodes: { resource: NODE_RESOURCE as Resource<ModelNode> },
  pools: { resource: ADDRESS_POOLS as Resource as Resource<ModelPool> },
};

/**
 * How a request ends. `lost`: done, but the answer is lost; `failed`: not done, without an answer; `late`: no answer, and the request is done
 * later.
 */
export type RequestFate = 'answered' | 'lost' | 'failed' | 'late';
/** `refused`: the API server answered that it was not done. */
export type WriteOutcome = 'done' | 'refused' | 'unknown';

function asZombie(by: Writer): Writer {
  return { ...by, isAbandoned: true };
}

interface PendingRequest {
  readonly by: Writer;
  readonly serve: () => WriteOutcome;
  readonly answer: (outcome: WriteOutcome) => void;
}

/** The API server of the model, and its pending requests. */
export class BlockCluster {
  readonly tracker = new ObjectTracker();
  readonly checker = new BlockChecker(this, POLICY.excessDelayMs);
  /** The stored objects. Checks of a write see those before it. */
  readonly blocks: Cache<BlockRecord>;
  readonly leases: Cache<LeaseRecord>;
  readonly nodes: Cache<ModelNode>;
  readonly pools: Cache<ModelPool>;
  /** In ms. */
  now = Date.UTC(2026, 0, 1);
  readonly #families: readonly Family[];
  readonly #pending: PendingRequest[] = [];
  #writer: Writer = { kind: 'admin', name: 'admin', startedAt: 0, isAbandoned: false };

  constructor(families: readonly Family[]) {
    this.#families = families;
    this.tracker.observe(ADDRESS_BLOCKS, ({ type, before, object }) => {
      const after = type === 'DELETED' ? undefined : object;
      const was = before && readBlock(before);
      const is = after && readBlock(after);
      this.checker.releaseWritten(before?.status?.release, after?.status?.release, this.#writer);
      this.checker.blockWritten(was, is, this.#writer);
    });
    this.tracker.observe(ADDRESS_LEASES, ({ type, before, object }) => {
      const is = type === 'DELETED' ? undefined : readLease(object);
      this.checker.leaseWritten(before && readLease(before), is, this.#writer);
    });
    this.blocks = this.#follow(WATCHED.blocks);
    this.leases = this.#follow(WATCHED.leases);
    this.nodes = this.#follow(WATCHED.nodes);
    this.pools = this.#follow(WATCHED.pools);
    for (const name of NODES) this.setNode(name, 'there');
    this.setPool('usual');
  }

  setNode(name: string, state: 'there' | 'ending' | 'gone'): void {
    if (state === 'gone') this.tracker.remove(WATCHED.nodes.resource, { name });
    else this.tracker.put(WATCHED.nodes.resource, { metadata: { name }, isEnding: state === 'ending' });
  }

  setPool(shape: PoolShape | 'ending' | 'gone'): void {
    const known = this.pools.get('blue');
    const metadata = { name: 'blue' };
    if (shape === 'gone' || shape === 'ending') {
      if (shape === 'gone') this.tracker.remove(WATCHED.pools.resource, metadata);
      else if (known !== undefined) this.tracker.put(WATCHED.pools.resource, { ...known, isEnding: true });
      return;
    }
    const subnets = this.#families.map((family) => {
      const { cidr, narrow } = SUBNETS[family];
      return { cidr, ...(shape === 'narrow' && { ranges: [narrow] }) };
    });
    const blockSize = { ipv4: blockSizeOf(shape, 4), ipv6: blockSizeOf(shape, 6) };
    const pool = compiledPool({ subnets, blockSize });
    // a pool that is being deleted stays so
    this.tracker.put(WATCHED.pools.resource, { metadata, pool, isEnding: known?.isEnding ?? false });
  }

  sendBlock(by: Writer, write: BlockWrite, answer: (outcome: WriteOutcome) => void): void {
    this.#send(by, () => void writeObject(this.tracker, ADDRESS_BLOCKS, write), answer);
  }

  sendLease(by: Writer, write: LeaseWrite, answer: (outcome: WriteOutcome, lease?: LeaseRecord) => void): void {
    let lease: LeaseRecord | undefined;
    const serve = () => {
      const written = writeObject(this.tracker, ADDRESS_LEASES, write);
      lease = written && readLease(written);
    };
    this.#send(by, serve, (outcome) => answer(outcome, outcome === 'done' ? lease : undefined));
  }

  /** A GET. @param answer called with the result, or with `unknown` without an answer */
  sendRead<T>(by: Writer, read: () => T, answer: (found: { readonly value: T } | 'unknown') => void): void {
    let value: T;
    const serve = () => {
      value = read();
    };
    this.#send(by, serve, (outcome) => answer(outcome === 'done' ? { value } : 'unknown'));
  }

  /** At once. @throws {StatusError} */
  writeBlock(by: Writer, write: BlockWrite): void {
    this.#as(by, () => writeObject(this.tracker, ADDRESS_BLOCKS, write));
  }

  get isIdle(): boolean {
    return this.#pending.length === 0;
  }

  serve(pick: number, ending: RequestFate): void {
    const [next] = this.#pending.splice(pick % Math.max(1, this.#pending.length), 1);
    if (next === undefined) return;
    if (ending === 'late') this.#pending.push({ ...next, by: asZombie(next.by), answer: () => undefined });
    const outcome = ending === 'late' || ending === 'failed' ? 'unknown' : this.#as(next.by, next.serve);
    next.answer(ending === 'answered' ? outcome : 'unknown');
  }

  /** Ends a process without answers. @param fate of its pending requests, in order */
  crash(name: string, fate: readonly ('done' | 'dropped' | 'late')[]): void {
    const own = this.#pending.filter(({ by }) => by.name === name && !by.isAbandoned);
    own.forEach((each, index) => {
      const then = fate[index % Math.max(1, fate.length)] ?? 'dropped';
      this.#pending.splice(this.#pending.indexOf(each), 1);
      if (then === 'done') this.#as(each.by, each.serve);
      if (then === 'late') this.#pending.push({ ...each, by: asZombie(each.by), answer: () => undefined });
    });
  }

  #follow<T extends KubeObject, S extends KubeObject = T>(watched: WatchSpec<T, S>): Cache<S> {
    const informer = new LaggingInformer(this.tracker, watched);
    informer.list();
    this.tracker.observe(watched.resource, () => informer.deliver());
    return informer.cache;
  }

  #send(by: Writer, serve: () => void, answer: (outcome: WriteOutcome) => void): void {
    const judged = (): WriteOutcome => {
      try {
        serve();
        return 'done';
      } catch (error) {
        if (error instanceof StatusError) return 'refused';
        throw error;
      }
    };
    this.#pending.push({ by, serve: judged, answer });
  }

  #as<O>(writer: Writer, write: () => O): O {
    const before = this.#writer;
    this.#writer = writer;
    try {
      return write();
    } finally {
      this.#writer = before;
    }
  }
}
