import { isNotFound } from '../kube/errors.js';
import type { Resource } from '../kube/resource.js';
import { CommandError } from './command-error.js';

export const INSTALL_HOLDFAST = 'install Holdfast first';

/**
 * Asks for objects of a kind that has to be there.
 * @param remedy what to do where it is not
 * @throws {CommandError} where the API server does not know the kind
 */
export async function requireKind<T>(
  { plural, group }: Pick<Resource, 'plural' | 'group'>,
  remedy: string,
  read: () => Promise<T>,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isNotFound(error)) throw new CommandError(`the API server knows no ${plural}.${group}: ${remedy}`);
    throw error;
  }
}
