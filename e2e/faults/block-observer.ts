import type { AddressBlock } from '../../api/address-block.js';
import type { AddressLease } from '../../api/address-lease.js';
import { parseAddress } from '../../ipam/core/address.js';
import { type Cidr, containsAddress, formatCidr, overlap, parseCidr } from '../../ipam/core/cidr.js';
import type { Client } from '../../kube/client.js';
import { Reflector } from '../../kube/reflector.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES } from '../../kube/resources.js';

/** What may follow what; '': the block is its node's. */
const TRANSITIONS: Readonly<Record<string, readonly string[]>> = {
  '': ['marked-for-release'],
  'marked-for-release': ['ready-for-release', 'do-not-release', 'released', ''],
  'ready-for-release': ['released', ''],
  'do-not-release': [''],
  released: [],
};

/** A block from its beginning to its end. */
interface BlockHistory {
  readonly node: string;
  readonly cidr: Cidr;
  readonly states: string[];
  readonly reasons: Set<string>;
  /** Versions between which it was given back. */
  readonly returnedIntervals: { readonly from: bigint; to?: bigint }[];
  isGone: boolean;
}

/** Watches the blocks of a pool and the leases of its address space: who says what of a block, and who picks from it when. */
export class BlockObserver {
  readonly violations: string[] = [];
  readonly #pool: string;
  readonly #blocks: Reflector<AddressBlock>;
  readonly #leases: Reflector<AddressLease>;
  /** By UID. */
  readonly #lives = new Map<string, BlockHistory>();
  /** By name, the UID of whoever had it last. */
  readonly #holders = new Map<string, string | undefined>();
  readonly #taken: { lease: AddressLease; at: bigint }[] = [];

  constructor(client: Client, pool: string, addressSpace: string) {
    this.#pool = pool;
    const see = (block: AddressBlock) => {
      if (block.spec.pool === this.#pool) this.#see(block);
    };
    this.#blocks = new Reflector<AddressBlock>({
      client,
      resource: ADDRESS_BLOCKS,
      transform: (block) => block,
      store: {
        replace: (blocks) => blocks.forEach(see),
        upsert: see,
        remove: ({ metadata }) => this.#remove(metadata),
      },
    });
    const seeLease = (lease: AddressLease) => {
      if (lease.spec.addressSpace === addressSpace) this.#seeLease(lease);
    };
    this.#leases = new Reflector<AddressLease>({
      client,
      resource: ADDRESS_LEASES,
      transform: (lease) => lease,
      store: { replace: (leases) => leases.forEach(seeLease), upsert: seeLease, remove: () => undefined },
    });
  }

  start(): void {
    this.#blocks.start();
    this.#leases.start();
  }

  /** @returns what never may happen */
  async stop(): Promise<string[]> {
    await Promise.all([this.#blocks.stop(), this.#leases.stop()]);
    for (const { lease, at } of this.#taken) {
      const { address, node = '' } = lease.spec;
      const lives = this.#of(node).filter(({ cidr }) => containsAddress(cidr, parseAddress(address)));
      const isForbidden = lives.some(({ returnedIntervals }) =>
        returnedIntervals.some(({ from, to }) => from < at && (to === undefined || at < to)),
      );
      if (isForbidden) this.violations.push(`${address} was picked on ${node} from a block that it had given back`);
    }
    return this.violations;
  }

  /** The blocks that there are, as far as was seen, and what they say. */
  current(): string[] {
    const living = [...this.#lives.values()].filter(({ isGone }) => !isGone);
    return living.map(({ cidr, states }) => `${formatCidr(cidr)} ${states.at(-1) ?? ''}`).sort();
  }

  /** What was said of the blocks that a node has, or had, in order; 'gone' is last. */
  releaseStatesOf(node: string): string[][] {
    return this.#of(node).map(({ states, isGone }) => [...states, ...(isGone ? ['gone'] : [])]);
  }

  /** Why blocks of a node were asked for. */
  reasonsOf(node: string): string[] {
    return [...new Set(this.#of(node).flatMap(({ reasons }) => [...reasons]))];
  }

  #of(node: string): BlockHistory[] {
    return [...this.#lives.values()].filter((life) => life.node === node);
  }

  #see({ metadata, spec, status }: AddressBlock): void {
    const { uid = '', resourceVersion = '0' } = metadata;
    const { release: word = '', reason } = status ?? {};
    const life = this.#lives.get(uid) ?? this.#begin(uid, spec);
    if (reason !== undefined) life.reasons.add(reason);
    const last = life.states.at(-1);
    if (last === word) return;
    if (last !== undefined && !isAllowedTransition(last, word))
      this.violations.push(`block ${metadata.name} went from "${last}" to "${word}"`);
    life.states.push(word);
    const version = BigInt(resourceVersion);
    if (word === 'ready-for-release') life.returnedIntervals.push({ from: version });
    else if (word === '') closeLastInterval(life, version);
  }

  #remove({ uid = '', resourceVersion = '0' }: AddressBlock['metadata']): void {
    const life = this.#lives.get(uid);
    if (life === undefined) return;
    life.isGone = true;
    closeLastInterval(life, BigInt(resourceVersion));
  }

  #begin(uid: string, { cidr: text, node }: AddressBlock['spec']): BlockHistory {
    const cidr = parseCidr(text);
    for (const other of this.#lives.values()) {
      if (other.isGone || !overlap(other.cidr, cidr)) continue;
      this.violations.push(`${text} was lent to ${node} while ${other.node} had it`);
    }
    const life: BlockHistory = { node, cidr, states: [], reasons: new Set(), returnedIntervals: [], isGone: false };
    this.#lives.set(uid, life);
    return life;
  }

  /** Versions order leases and blocks among each other. */
  #seeLease(lease: AddressLease): void {
    const { metadata, spec } = lease;
    const before = this.#holders.get(metadata.name);
    this.#holders.set(metadata.name, spec.owner?.uid);
    if (spec.owner?.kind !== 'Pod' || spec.releasedAt !== undefined || spec.owner.uid === before) return;
    this.#taken.push({ lease, at: BigInt(metadata.resourceVersion ?? '0') });
  }
}

function closeLastInterval({ returnedIntervals }: BlockHistory, version: bigint): void {
  const last = returnedIntervals.at(-1);
  if (last !== undefined) last.to ??= version;
}

function isAllowedTransition(last: string, word: string): boolean {
  return TRANSITIONS[last]?.includes(word) === true;
}
