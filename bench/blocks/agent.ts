import {
  MAX_ALLOCATION_ATTEMPTS,
  MAX_BLIND_ATTEMPTS,
  MAX_BLOCK_ATTEMPTS,
  WATCHED_ATTEMPTS,
} from '../../cni/agent/leases/free-address-search.js';
import { MAX_UNLEASED, MAX_WATCH_MS } from '../../cni/agent/leases/space-candidates.js';
import { MAX_READS_AT_ONCE } from '../../cni/agent/leases/unleased-addresses.js';
import type { Address } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { type LeaseRecord, createLease, releaseLease } from '../../addressing/lease/lease.js';
import { addressesOf } from '../../addressing/pool/pool.js';
import type { Simulation } from './simulation.js';
import type { SimulatedBlocks } from './simulated-blocks.js';
import { type SpaceView, TriedAddresses } from './space-view.js';

export interface SimulatedAgentDeps extends Simulation {
  readonly node: string;
  /** Shared by agents whose watches have the same lag. */
  readonly view: SpaceView;
  /** The view of agents that know no leases. */
  readonly blind: SpaceView;
  /** Absent if the feature gate NodeBlocks is off. */
  readonly blocks?: SimulatedBlocks;
}

interface PendingAdd {
  readonly pod: string;
  readonly began: number;
  tries: number;
  /** Attempts outside of the node's blocks. */
  blind: number;
  readonly done: (lease: LeaseRecord | undefined) => void;
}

type SettleAttempt = (outcome: 'ours' | 'lost', lease?: LeaseRecord) => void;

/** The agent of a node: which addresses it tries for an ADD, and when it watches the address space. */
export class SimulatedAgent {
  readonly #deps: SimulatedAgentDeps;
  readonly #tried: TriedAddresses;
  /** State of its watch of the address space; `open` after the first list. */
  #space: 'closed' | 'opening' | 'open' = 'closed';
  #waiting: (() => void)[] = [];
  /** Addresses that had no lease when they were read. */
  readonly #unleased: Address[] = [];

  constructor(given: SimulatedAgentDeps) {
    this.#deps = given;
    this.#tried = new TriedAddresses(given.time, given.random);
  }

  /** Whether it gets the events of all leases of the address space. */
  get followsSpace(): boolean {
    return this.#space !== 'closed';
  }

  /** Runs an ADD. @param done gets undefined if there is no address and the runtime must retry */
  add(pod: string, done: PendingAdd['done']): void {
    const add = { pod, began: this.#deps.time.now(), tries: 0, blind: 0, done };
    this.#try(add);
  }

  del(lease: LeaseRecord, done: (lease: LeaseRecord) => void): void {
    const { api, time, tally } = this.#deps;
    tally().frees++;
    const lost = () => {
      throw new Error(`${lease.metadata.name} was changed by another writer`);
    };
    api.writeLease(
      releaseLease(lease, time.now()),
      (released) => {
        this.#deps.blocks?.leased(released!);
        done(released!);
      },
      lost,
    );
  }

  #try(add: PendingAdd): void {
    const { blocks, tally } = this.#deps;
    const own = add.blind === 0 && add.tries < MAX_BLOCK_ATTEMPTS ? this.#pickOfBlocks() : undefined;
    if (blocks === undefined || own === undefined) {
      this.#tryAny(add);
      return;
    }
    this.#create(add, own, (outcome, lease) => {
      if (lease !== undefined) blocks.leased(lease);
      blocks.settle(own, outcome);
      if (outcome === 'ours') tally().fromBlocks++;
    });
  }

  /** Picks an address of the blocks. If the address space is watched, taken addresses are skipped. */
  #pickOfBlocks(): Address | undefined {
    const { blocks, view } = this.#deps;
    for (;;) {
      const address = blocks?.pick();
      if (address === undefined || this.#space !== 'open' || !view.space.isOccupied(address)) return address;
      blocks?.settle(address, 'lost');
    }
  }

  /** Picks at random first, and then with a watch of the address space. */
  #tryAny(add: PendingAdd): void {
    if (add.tries >= MAX_ALLOCATION_ATTEMPTS) {
      this.#refuse(add);
      return;
    }
    const knows = this.#space === 'open';
    if (!knows && add.blind >= MAX_BLIND_ATTEMPTS) this.#open();
    if (!knows && add.blind >= MAX_ALLOCATION_ATTEMPTS - WATCHED_ATTEMPTS) {
      this.#waiting.push(() => this.#try(add));
      return;
    }
    if (!knows && add.blind > 0) {
      this.#readMany(add);
      return;
    }
    add.blind++;
    const address = this.#pickFree(knows);
    if (address === undefined) this.#refuse(add);
    else this.#createFree(add, address);
  }

  #pickFree(knows: boolean): Address | undefined {
    const { pool, view, blind, blocks } = this.#deps;
    const kept = this.#unleased.pop();
    if (kept !== undefined && !knows) return kept;
    this.#unleased.length = 0;
    const { space } = knows ? view : blind;
    return this.#tried.pick(pool, space, (each) => blocks?.isElsewhere(each) !== false);
  }

  #createFree(add: PendingAdd, address: Address): void {
    this.#create(add, address, (_outcome, lease) => {
      this.#tried.settle(address);
      if (lease !== undefined) this.#deps.blocks?.leased(lease);
    });
  }

  /** Reads the leases of several picks at once: a read costs less than a create that fails. */
  #readMany(add: PendingAdd): void {
    const { api, pool, tally } = this.#deps;
    const unleased: Address[] = [];
    let left = MAX_READS_AT_ONCE;
    const done = () => {
      const [first, ...others] = unleased;
      this.#unleased.push(...others);
      this.#unleased.splice(0, this.#unleased.length - MAX_UNLEASED);
      if (first === undefined) this.#try(add);
      else this.#createFree(add, first);
    };
    for (let n = 0; n < MAX_READS_AT_ONCE; n++) {
      const address = this.#pickFree(false)!;
      tally().reads++;
      api.readLease(leaseName(pool.addressSpace, address), (lease) => {
        if (lease === undefined) unleased.push(address);
        else {
          add.tries++;
          add.blind++;
          this.#tried.settle(address);
        }
        if (--left === 0) done();
      });
    }
  }

  #create(add: PendingAdd, address: Address, settle: SettleAttempt): void {
    const { node, pool, api, time, tally } = this.#deps;
    add.tries++;
    tally().creates++;
    const owner = { kind: 'Pod', namespace: 'apps', name: add.pod, uid: add.pod } as const;
    const place = { node, containerID: add.pod, interface: 'net1' };
    const write = createLease({ address, addressSpace: pool.addressSpace, pool: pool.name, owner, ...place });
    const done = (lease: LeaseRecord | undefined) => {
      settle('ours', lease);
      tally().tries.push(add.tries);
      tally().latencies.push(time.now() - add.began);
      add.done(lease);
    };
    const lost = () => {
      settle('lost');
      tally().conflicts++;
      this.#try(add);
    };
    api.writeLease(write, done, lost);
  }

  #refuse(add: PendingAdd): void {
    this.#deps.tally().refused++;
    add.done(undefined);
  }

  #open(): void {
    if (this.#space !== 'closed') return;
    this.#space = 'opening';
    const { api, tally } = this.#deps;
    const items = api.leases.records.size;
    tally().spaceListed += items;
    api.list(items, () => {
      this.#space = 'open';
      this.#closeLater();
      for (const go of this.#waiting.splice(0)) go();
    });
  }

  /** Ends the watch after its time, unless three quarters of the pool are leased. */
  #closeLater(): void {
    const { pool, view, time } = this.#deps;
    time.after(MAX_WATCH_MS, () => {
      const isCrowded = view.space.free(pool.name, 4) * 4n < addressesOf(pool, 4, 'open').size;
      if (isCrowded) this.#closeLater();
      else this.#space = 'closed';
    });
  }
}
