import { type AddressBlock, BlockRelease, ReleaseReason } from '../../api/address-block.js';
import { parseAddress } from '../../addressing/address/address.js';
import { containsAddress, parseCidr } from '../../addressing/address/cidr.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_BLOCKS } from '../../kube/resources.js';
import { untilValue } from '../processes/wait.js';

/** Reads and changes the blocks of one pool. */
export class BlockStory {
  readonly #client: Client;
  readonly #pool: string;

  /** @param pool name of the pool */
  constructor(client: Client, pool: string) {
    this.#client = client;
    this.#pool = pool;
  }

  async all(): Promise<AddressBlock[]> {
    const { items } = await this.#client.list(ADDRESS_BLOCKS, { fieldSelector: `spec.pool=${this.#pool}` });
    return items;
  }

  /** The blocks of a node. */
  async ofNode(node: string): Promise<AddressBlock[]> {
    return (await this.all()).filter(({ spec }) => spec.node === node);
  }

  /** Waits until the number of a node's blocks is right and none is marked for release. @returns their CIDRs */
  async waitAssigned(node: string, isRight: (count: number) => boolean): Promise<string[]> {
    const found = await untilValue(
      `node ${node} to have blocks`,
      () => this.ofNode(node),
      (blocks) => isRight(blocks.length) && blocks.every(({ status }) => status?.release === undefined),
      { timeoutMs: 60_000 },
    );
    return found.map(({ spec }) => spec.cidr);
  }

  /** Marks a block for release in place of ipam, which has no reason to. */
  async markForRelease(name: string): Promise<void> {
    const body = { status: { release: BlockRelease.Marked, reason: ReleaseReason.Pressure } };
    await this.#client.patch(ADDRESS_BLOCKS, { name }, { type: 'merge', body }, { subresource: 'status' });
  }

  /** Waits until a block has this release state, or none. */
  async waitForReleaseState(name: string, word: string | undefined): Promise<void> {
    await untilValue(
      `block ${name} to have the release state ${word ?? 'none'}`,
      () => this.#client.find(ADDRESS_BLOCKS, { name }),
      (block) => block !== undefined && block.status?.release === word,
      { timeoutMs: 60_000 },
    );
  }

  async waitGone(name: string): Promise<void> {
    const find = () => this.#client.find(ADDRESS_BLOCKS, { name });
    await untilValue(`block ${name} to be gone`, find, (block) => block === undefined, { timeoutMs: 90_000 });
  }
}

/** @param address without prefix length */
export function isIn(address: string, cidrs: readonly string[]): boolean {
  return cidrs.some((cidr) => containsAddress(parseCidr(cidr), parseAddress(address)));
}
