import { type AddressBlock, BlockRelease, ReleaseReason } from '../../../../api/address-block.js';
import type { AddressLease } from '../../../../api/address-lease.js';
import { parseAddress } from '../../../../addressing/address/address.js';
import { containsAddress, parseCidr } from '../../../../addressing/address/cidr.js';
import type { BlockStore } from './block-store.js';

const SLICES = ['10.0.0.0/30', '10.0.0.4/30', 'fd00::/126', 'fd00::4/126'];
const REASONS = [ReleaseReason.Excess, ReleaseReason.Pressure];

/** The part of ipam that lends slices of the pool and marks them for release, with checks of what agents must never do. */
export class LentBlockModel {
  readonly #store: BlockStore;
  readonly #violated: (text: string) => void;
  returns = 0;

  constructor(store: BlockStore, wrong: (text: string) => void) {
    this.#store = store;
    this.#violated = wrong;
  }

  lend(pick: number, node: string): void {
    const cidr = SLICES[pick % SLICES.length]!;
    if (this.#store.of(cidr) === undefined) this.#store.set(cidr, node);
  }

  mark(pick: number): void {
    const block = this.#choose(pick, [undefined]);
    if (block === undefined) return;
    const reason = REASONS[pick % REASONS.length]!;
    this.#store.set(block.spec.cidr, block.spec.node, { release: BlockRelease.Marked, reason });
  }

  keep(pick: number): void {
    const block = this.#choose(pick, [BlockRelease.Marked, BlockRelease.Ready, BlockRelease.Refused]);
    if (block !== undefined) this.#store.set(block.spec.cidr, block.spec.node);
  }

  takeBack(pick: number): void {
    const block = this.#choose(pick, [BlockRelease.Ready]);
    if (block === undefined) return;
    this.#store.delete(block.spec.cidr);
    this.returns++;
  }

  /** Checks a write of a lease: an agent must not pick an address of a block that it has released. */
  checkWrite(before: AddressLease | undefined, after: AddressLease | undefined): void {
    if (after?.spec.owner?.kind !== 'Pod' || after.spec.releasedAt !== undefined || isBack(before, after)) return;
    const { address, node = '' } = after.spec;
    const givenBack = [...this.#store.blocks.values()].filter(
      ({ spec, status }) => spec.node === node && status?.release === BlockRelease.Ready,
    );
    for (const { spec } of givenBack) {
      if (containsAddress(parseCidr(spec.cidr), parseAddress(address)))
        this.#violated(`${address} was picked on ${node} from ${spec.cidr}, which the node has released`);
    }
  }

  /** Checks that every marked block is answered. Call it when nothing is under way. */
  checkAnswered(): void {
    for (const { spec, status } of this.#store.blocks.values()) {
      if (status?.release === BlockRelease.Marked)
        this.#violated(`${spec.cidr} was marked for release and not answered`);
    }
  }

  #choose(pick: number, words: readonly (string | undefined)[]): AddressBlock | undefined {
    const found = [...this.#store.blocks.values()].filter(({ status }) => words.includes(status?.release));
    return found[pick % Math.max(found.length, 1)];
  }
}

/** Whether the write picks nothing new: the pod had the address before, or it is sticky for its MAC address. */
function isBack(before: AddressLease | undefined, { spec }: AddressLease): boolean {
  if (before === undefined) return false;
  return before.spec.owner?.uid === spec.owner?.uid || (spec.mac !== undefined && before.spec.mac === spec.mac);
}
