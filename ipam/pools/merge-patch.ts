import { isRecord } from '../../api/json.js';

/** Creates the merge patch (RFC 7386) that turns one JSON object into another. Keys that are gone become null, at any depth. */
export function createMergePatch(before: object, after: object): Record<string, unknown> {
  const gone = Object.keys(before).filter((key) => (after as Record<string, unknown>)[key] === undefined);
  const patch: Record<string, unknown> = Object.fromEntries(gone.map((key) => [key, null]));
  for (const [key, value] of Object.entries(after)) {
    if (value === undefined) continue;
    const known = (before as Record<string, unknown>)[key];
    patch[key] = isRecord(value) && isRecord(known) ? createMergePatch(known, value) : (value as unknown);
  }
  return patch;
}
