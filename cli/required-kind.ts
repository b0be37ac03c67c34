import { isNotFound } from '../kube/errors.js';
import type { Resource } from '../kube/resource.js';
import { CommandError } from './command-error.js';

export const INSTALL_HOLDFAST = 'install Holdfast first';

/**
 * Reads objects of a kind that the API server has to serve.
 * @param remedy what to do if it does not
 * @throws {CommandError} if the API server does not serve the kind
 */
export async function requireKind<T>(
  { plural, group }: Pick<Resource, 'plural' | 'group'>,
  remedy: string,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isNotFound(error)) throw new CommandError(`the API server does not serve ${plural}.${group}: ${remedy}`);
    throw error;
  }
}
