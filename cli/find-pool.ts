import { type Pool, compilePool } from '../addressing/pool/pool.js';
import { type AddressPool, nadNamespaceOf } from '../api/address-pool.js';
import type { Client } from '../kube/client.js';
import { ADDRESS_POOLS } from '../kube/resources.js';
import { CommandError } from './exit-code.js';
import { INSTALL_HOLDFAST, readList, readObject, required, valueOr } from './reader.js';

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
  const similar = similarNames(
    name,
    others.map(({ metadata, spec }) => {
      return { name: metadata.name, aliases: [spec.network, nadNamespaceOf({ metadata }) ?? []].flat() };
    }),
  );
  const shown = similar.slice(0, MAX_SUGGESTIONS).join(', ');
  const suggestion =
    similar.length === 0
      ? 'run kubectl get apools to list all pools'
      : `did you mean ${shown}${similar.length > MAX_SUGGESTIONS ? `, or another of ${similar.length}` : ''}?`;
  throw new CommandError(`AddressPool ${name} does not exist: ${suggestion}`);
}

/** @throws {CommandError} if the spec of the pool is invalid */
export function requireValidPool(object: AddressPool): Pool {
  const compiled = compilePool(object);
  if (compiled.ok) return compiled.pool;
  const problems = compiled.problems.map(({ field, message }) => `${field} ${message}`).join('; ');
  throw new CommandError(`AddressPool ${object.metadata.name} is invalid: ${problems}`);
}

/** A name, and other texts by which people refer to it. */
interface Candidate {
  readonly name: string;
  readonly aliases?: readonly string[];
}

/** Returns the names that resemble a text, or of which an alias does, the most similar first. */
export function similarNames(text: string, candidates: readonly Candidate[]): string[] {
  const wanted = text.toLowerCase();
  return candidates
    .map(({ name, aliases = [] }) => ({
      name,
      rank: Math.min(...[name, ...aliases].map((each) => rankOf(wanted, each.toLowerCase()))),
    }))
    .filter(({ rank }) => rank < Infinity)
    .sort((a, b) => a.rank - b.rank || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

/** Lower is more similar. */
function rankOf(wanted: string, name: string): number {
  if (name === wanted) return 0;
  if (isOneEditAway(wanted, name)) return 1;
  if (name.startsWith(wanted) || wanted.startsWith(name)) return 2;
  return wanted.length > 2 && name.includes(wanted) ? 3 : Infinity;
}

/** True if one character is missing, added or different, or two neighbours are swapped. */
function isOneEditAway(a: string, b: string): boolean {
  if (Math.abs(a.length - b.length) > 1) return false;
  let start = 0;
  while (start < a.length && a[start] === b[start]) start++;
  const [restA, restB] = [a.slice(start), b.slice(start)];
  const tails = ([skipA, skipB]: readonly [number, number]) => restA.slice(skipA) === restB.slice(skipB);
  const [[a0, a1], [b0, b1]] = [restA, restB];
  const isSwapped = a0 === b1 && a1 === b0 && tails([2, 2]);
  return isSwapped || tails([1, 1]) || tails([1, 0]) || tails([0, 1]);
}
