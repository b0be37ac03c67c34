import type { AddressBlock } from '../../api/address-block.js';
import type { AddressLease } from '../../api/address-lease.js';
import { parseAddress } from '../../addressing/address/address.js';
import { type Cidr, containsAddress, formatCidr, overlap, parseCidr } from '../../addressing/address/cidr.js';
import type { Client } from '../../kube/client.js';
import type { Reflector } from '../../kube/informers/reflector.js';
import { ADDRESS_BLOCKS, ADDRESS_LEASES } from '../../kube/resources.js';
import { watchObjects } from '../story/watched-objects.js';

/** The allowed transitions of a block's release state; '': the block is assigned, and not marked for release. */
const TRANSITIONS: Readonly<Record<string, readonly string[]>> = {
  '': ['marked-for-release'],
  'marked-for-release': ['ready-for-release', 'do-not-release', 'released', ''],
  'ready-for-release': ['released', ''],
  'do-not-release': [''],
  released: [],
};

/** What was observed of one block. */
interface BlockHistory {
  readonly node: string;
  readonly cidr: Cidr;
  readonly states: string[];
  readonly reasons: Set<string>;
  /** Intervals of resourceVersions in which its node must not use it. */
  readonly returnedIntervals: { readonly from: bigint; to?: bigint }[];
  isGone: boolean;
}

/** Watches the blocks of a pool and the leases of its address space, and checks the release handshake. */
export class BlockObserver {
  readonly violations: string[] = [];
  readonly #blocks: Reflector<AddressBlock>;
  readonly #leases: Reflector<AddressLease>;
  /** By UID. */
  readonly #lives = new Map<string, BlockHistory>();
  /** UID of the last owner, by name of the lease. */
  readonly #holders = new Map<string, string | undefined>();
  readonly #taken: { lease: AddressLease; at: bigint }[] = [];

  constructor(client: Client, pool: string, addressSpace: string) {
    this.#blocks = watchObjects(client, ADDRESS_BLOCKS, {
      see: (block) => {
        if (block.spec.pool === pool) this.#see(block);
      },
      remove: ({ metadata }) => this.#remove(metadata),
    });
    this.#leases = watchObjects(client, ADDRESS_LEASES, {
      see: (lease) => {
        if (lease.spec.addressSpace === addressSpace) this.#seeLease(lease);
      },
    });
  }

  start(): void {
    this.#blocks.start();
    this.#leases.start();
  }

  /** @returns violations of invariants */
  async stop(): Promise<string[]> {
    await Promise.all([this.#blocks.stop(), this.#leases.stop()]);
    for (const { lease, at } of this.#taken) {
      const { address, node = '' } = lease.spec;
      const lives = this.#of(node).filter(({ cidr }) => containsAddress(cidr, parseAddress(address)));
      const isForbidden = lives.some(({ returnedIntervals }) =>
        returnedIntervals.some(({ from, to }) => from < at && (to === undefined || at < to)),
      );
      if (isForbidden) this.violations.push(`${node} leased ${address} from a block that it had returned`);
    }
    return this.violations;
  }

  /** The blocks that exist, as far as observed, with their release states. */
  current(): string[] {
    const living = [...this.#lives.values()].filter(({ isGone }) => !isGone);
    return living.map(({ cidr, states }) => `${formatCidr(cidr)} ${states.at(-1) ?? ''}`).sort();
  }

  /** The release states of each block of a node, in order; 'gone' after its deletion. */
  releaseStatesOf(node: string): string[][] {
    return this.#of(node).map(({ states, isGone }) => [...states, ...(isGone ? ['gone'] : [])]);
  }

  /** The reasons with which blocks of a node were marked for release. */
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
      this.violations.push(`${text} was assigned to ${node} while ${other.node} had it`);
    }
    const life: BlockHistory = { node, cidr, states: [], reasons: new Set(), returnedIntervals: [], isGone: false };
    this.#lives.set(uid, life);
    return life;
  }

  /** The order of leases and blocks is that of their resourceVersions. */
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
