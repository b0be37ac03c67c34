import { type AddressPool, nadNamespaceOf } from '../api/address-pool.js';
import { findUnlessGone } from '../kube/absence.js';
import type { Client } from '../kube/client.js';
import { isForbidden } from '../kube/errors.js';
import { ADDRESS_POOLS } from '../kube/resources.js';
import { CommandError } from './command-error.js';
import { INSTALL_HOLDFAST, requireKind } from './required-kind.js';
import { type Candidate, similarNames } from './similar-names.js';

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
  const similar = similarNames(name, (await listPools(client)).map(candidateOf));
  const shown = similar.slice(0, MAX_SUGGESTIONS).join(', ');
  const suggestion =
    similar.length === 0
      ? 'run kubectl get apools to list all pools'
      : `did you mean ${shown}${similar.length > MAX_SUGGESTIONS ? `, or another of ${similar.length}` : ''}?`;
  throw new CommandError(`AddressPool ${name} does not exist: ${suggestion}`);
}

function candidateOf(pool: AddressPool): Candidate {
  return { name: pool.metadata.name, aliases: [pool.spec.network, nadNamespaceOf(pool) ?? []].flat() };
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
