import { type AddressBlock, BlockRelease, ReleaseReason } from '../../api/address-block.js';
import { parseAddress } from '../../ipam/core/address.js';
import { containsAddress, parseCidr } from '../../ipam/core/cidr.js';
import type { Client } from '../../kube/client.js';
import { ADDRESS_BLOCKS } from '../../kube/resources.js';
import { untilValue } from '../bed/wait.js';

/** What users see of the blocks of one pool. */
export class BlockStory {
  readonly #client: Client;
  readonly #pool: string;

  /** @param pool its name */
  constructor(client: Client, pool: string) {
    this.#client = client;
    this.#pool = pool;
  }

  async all(): Promise<AddressBlock[]> {
    const { items } = await this.#client.list(ADDRESS_BLOCKS, { fieldSelector: `spec.pool=${this.#pool}` });
    return items;
  }

  /** Those of a node. */
  async ofNode(node: string): Promise<AddressBlock[]> {
    return (await this.all()).filter(({ spec }) => spec.node === node);
  }

  /** Waits until a node has as many as that, of which none is asked for. @returns their CIDRs */
  async waitAssigned(node: string, isRight: (count: number) => boolean): Promise<string[]> {
    const found = await untilValue(
      `node ${node} to have blocks`,
      () => this.ofNode(node),
      (blocks) => isRight(blocks.length) && blocks.every(({ status }) => status?.release === undefined),
      { timeoutMs: 60_000 },
    );
    return found.map(({ spec }) => spec.cidr);
  }

  /** Asks its node for it in the name of ipam, which has no such wish. */
  async markForRelease(name: string): Promise<void> {
    const body = { status: { release: BlockRelease.Marked, reason: ReleaseReason.Pressure } };
    await this.#client.patch(ADDRESS_BLOCKS, { name }, { type: 'merge', body }, { subresource: 'status' });
  }

  /** Waits until a block says this, or nothing. */
  async waitForReleaseState(name: string, word: string | undefined): Promise<void> {
    await untilValue(
      `block ${name} to say ${word ?? 'nothing'}`,
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
