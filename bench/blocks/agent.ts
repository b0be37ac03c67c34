import {
  MAX_ALLOCATION_ATTEMPTS,
  MAX_BLIND_ATTEMPTS,
  MAX_BLOCK_ATTEMPTS,
} from '../../cni/agent/leases/free-address-search.js';
import { MAX_WATCH_MS } from '../../cni/agent/leases/space-candidates.js';
import type { Address } from '../../addressing/address/address.js';
import { leaseName } from '../../addressing/lease/lease-name.js';
import { type LeaseRecord, createLease, releaseLease } from '../../addressing/lease/lease.js';
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
    const { pool, view, blind, blocks } = this.#deps;
    if (add.tries >= MAX_ALLOCATION_ATTEMPTS) {
      this.#refuse(add);
      return;
    }
    const knows = this.#space === 'open';
    if (!knows && add.blind >= MAX_BLIND_ATTEMPTS) {
      this.#open();
      this.#waiting.push(() => this.#try(add));
      return;
    }
    add.blind++;
    const { space } = knows ? view : blind;
    const address = this.#tried.pick(pool, space, (each) => blocks?.isElsewhere(each) !== false);
    if (address === undefined) {
      this.#refuse(add);
      return;
    }
    const settle: SettleAttempt = (_outcome, lease) => {
      this.#tried.settle(address);
      if (lease !== undefined) blocks?.leased(lease);
    };
    if (knows || add.tries === 0) this.#create(add, address, settle);
    else this.#createUnlessLeased(add, address, settle);
  }

  /** A random pick after the first one: a read costs less than a create that fails. */
  #createUnlessLeased(add: PendingAdd, address: Address, settle: SettleAttempt): void {
    const { api, pool, tally } = this.#deps;
    tally().reads++;
    api.readLease(leaseName(pool.addressSpace, address), (lease) => {
      if (lease === undefined) {
        this.#create(add, address, settle);
        return;
      }
      add.tries++;
      settle('lost');
      this.#try(add);
    });
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
    const { api, tally, time } = this.#deps;
    const items = api.leases.records.size;
    tally().spaceListed += items;
    api.list(items, () => {
      this.#space = 'open';
      time.after(MAX_WATCH_MS, () => (this.#space = 'closed'));
      for (const go of this.#waiting.splice(0)) go();
    });
  }
}
