import { isNotFound } from '../kube/errors.js';
import type { Resource } from '../kube/resource.js';
import { Refusal } from './refusal.js';

export const INSTALL_HOLDFAST = 'install Holdfast first';

/**
 * Asks for objects of a kind that has to be there.
 * @param remedy what to do where it is not
 * @throws {Refusal} where the API server does not know the kind
 */
export async function ofKnownKind<T>(
  { plural, group }: Pick<Resource, 'plural' | 'group'>,
  remedy: string,
  ask: () => Promise<T>,
): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (isNotFound(error)) throw new Refusal(`the API server knows no ${plural}.${group}: ${remedy}`);
    throw error;
  }
}
