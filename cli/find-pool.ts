import { type AddressPool, nadNamespaceOf } from '../api/address-pool.js';
import { findUnlessGone } from '../kube/absence.js';
import type { Client } from '../kube/client.js';
import { isForbidden } from '../kube/errors.js';
import { ADDRESS_POOLS } from '../kube/resources.js';
import { CommandError } from './command-error.js';
import { INSTALL_HOLDFAST, requireKind } from './required-kind.js';

const MAX_SUGGESTIONS = 5;

/**
 * Reads a pool by its name. Holdfast names derived pools, so people try the network's name or the namespace: the error suggests pools.
 * @throws {CommandError} if it does not exist
 */
export async function findPool(name: string, client: Pick<Client, 'get' | 'list'>): Promise<AddressPool> {
  const found = await requireKind(ADDRESS_POOLS, INSTALL_HOLDFAST, () =>
    findUnlessGone(client, ADDRESS_POOLS, { name }),
  );
  if (found !== undefined) return found;
  const similar = similarPools(name, await listPools(client));
  const shown = similar.slice(0, MAX_SUGGESTIONS).join(', ');
  const suggestion =
    similar.length === 0
      ? 'run kubectl get apools to list all pools'
      : `did you mean ${shown}${similar.length > MAX_SUGGESTIONS ? `, or another of ${similar.length}` : ''}?`;
  throw new CommandError(`AddressPool ${name} does not exist: ${suggestion}`);
}

/** Returns the names of pools whose name, network or namespace resembles the text, the most similar first. */
export function similarPools(text: string, pools: readonly AddressPool[]): string[] {
  const wanted = text.toLowerCase();
  return pools
    .map((pool) => ({ name: pool.metadata.name, rank: rankOf(wanted, pool) }))
    .filter(({ rank }) => rank < Infinity)
    .sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

/** Lower is more similar. */
function rankOf(wanted: string, pool: AddressPool): number {
  const { metadata, spec } = pool;
  const network = spec.network.toLowerCase();
  const rank = [
    network === wanted || metadata.name.toLowerCase() === wanted,
    nadNamespaceOf(pool) === wanted,
    metadata.name.startsWith(wanted) || network.startsWith(wanted),
    wanted.length > 2 && (metadata.name.includes(wanted) || wanted.startsWith(network)),
  ].indexOf(true);
  return rank < 0 ? Infinity : rank;
}

/** Users who may not list pools get no suggestion. */
async function listPools(client: Pick<Client, 'list'>): Promise<AddressPool[]> {
  try {
    return (await client.list(ADDRESS_POOLS)).items;
  } catch (error) {
    if (isForbidden(error)) return [];
    throw error;
  }
}
