import { BlockCandidates } from '../../cni/agent/blocks/block-candidates.js';
import { LentBlocks } from '../../cni/agent/blocks/lent-blocks.js';
import { ANSWER_INTERVAL_MS } from '../../cni/agent/blocks/node-blocks.js';
import type { Address } from '../../addressing/address/address.js';
import type { BlockRecord } from '../../addressing/block/block.js';
import { type LeaseRecord, stateOf } from '../../addressing/lease/lease.js';
import type { SimulatedEvent } from './api.js';
import type { Simulation } from './simulation.js';

/** The blocks of a node and its answers, decided by {@link LentBlocks} and {@link BlockCandidates}. */
export class SimulatedBlocks {
  readonly #deps: Simulation;
  readonly #lent = new LentBlocks(ANSWER_INTERVAL_MS);
  readonly #candidates: BlockCandidates;
  /** Time of the next scheduled answer. */
  #answerAt = Number.POSITIVE_INFINITY;

  constructor(deps: Simulation) {
    this.#deps = deps;
    this.#candidates = new BlockCandidates(this.#lent, { clock: deps.time, random: deps.random });
    this.#lent.setLeasesKnown();
  }

  pick(): Address | undefined {
    return this.#candidates.pick(this.#deps.pool, 4);
  }

  settle(address: Address, outcome: 'ours' | 'lost'): void {
    this.#candidates.settle(this.#deps.pool, address, outcome);
  }

  /** Whether an address outside of the node's blocks may be picked: not known to be taken, nor in a block that goes back. */
  isElsewhere(address: Address): boolean {
    const { pool } = this.#deps;
    return !this.#candidates.isKnown(pool, address) && !this.#lent.withheld(pool.name, 4).has(address.value);
  }

  /** Records a lease that this node has written. */
  leased(lease: LeaseRecord): void {
    this.#candidates.addLease(lease.addressSpace, lease.address);
    if (stateOf(lease) === 'held') this.#lent.addUse(lease.metadata.name, lease);
    else this.#lent.removeUse(lease.metadata.name);
  }

  expired({ addressSpace, address }: LeaseRecord): void {
    this.#candidates.removeLease(addressSpace, address);
  }

  observe({ record, isGone }: SimulatedEvent<BlockRecord>): void {
    this.#lent.observe({ type: isGone ? 'removed' : 'changed', object: record });
    this.#answerLater();
  }

  #answerLater(): void {
    const { time } = this.#deps;
    const next = this.#lent.nextAnswerAt();
    if (next === undefined || next >= this.#answerAt) return;
    this.#answerAt = Math.max(next, time.now());
    time.after(this.#answerAt - time.now(), () => {
      this.#answerAt = Number.POSITIVE_INFINITY;
      this.#answer();
      this.#answerLater();
    });
  }

  #answer(): void {
    const { api, time, tally } = this.#deps;
    for (const block of this.#lent.answersDue(time.now())) {
      const write = this.#lent.answer(block, time.now());
      if (write === undefined) continue;
      tally().blockWrites++;
      const answered = (outcome: 'done' | 'lost') => () => {
        this.#lent.answered(block, outcome, time.now());
        this.#answerLater();
      };
      api.writeBlock(write, answered('done'), answered('lost'));
    }
  }
}
