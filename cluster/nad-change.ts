import { isDeepStrictEqual } from 'node:util';
import type { ObjectChange } from '../kube/informer.js';
import type { ParsedNad } from './transforms.js';

/** True unless only labels, annotations or other fields that nobody reads have changed: a tenant may write them all the time. */
export function changesNetwork({ type, object, before }: ObjectChange<ParsedNad>): boolean {
  if (type !== 'changed' || before === undefined) return true;
  const withoutVersion = (nad: ParsedNad) => ({ ...nad, metadata: { ...nad.metadata, resourceVersion: undefined } });
  return !isDeepStrictEqual(withoutVersion(before), withoutVersion(object));
}
