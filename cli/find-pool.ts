import { type AddressPool, nadNamespaceOf } from '../api/address-pool.js';
import type { Client } from '../kube/client.js';
import { ADDRESS_POOLS } from '../kube/resources.js';
import { CommandError } from './command-error.js';
import { INSTALL_HOLDFAST, readList, readObject, required, valueOr } from './reader.js';
import { type Candidate, similarNames } from './similar-names.js';

const MAX_SUGGESTIONS = 5;

/**
 * Reads a pool by its name. Holdfast names derived pools, so people try the network's name or the namespace: the error suggests pools.
 * @throws {CommandError} if it does not exist
 */
export async function findPool(name: string, client: Pick<Client, 'get' | 'list'>): Promise<AddressPool> {
  const read = await readObject(client, ADDRESS_POOLS, { name });
  if (read.kind !== 'absent') return required(read, INSTALL_HOLDFAST);
  // users who may not list pools get no suggestion
  const others = valueOr(await readList(client, ADDRESS_POOLS), { forbidden: [] });
  const similar = similarNames(name, others.map(candidateOf));
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
