import { isRecord } from '../api/json.js';

/** Applies a merge patch (RFC 7386) to an object of JSON, in place. */
export function mergePatch(target: object, patch: object): void {
  merge(target as Record<string, unknown>, patch as Record<string, unknown>);
}

function merge(target: Record<string, unknown>, patch: Record<string, unknown>): void {
  for (const [key, value] of Object.entries(patch)) {
    const known = target[key];
    if (value === null) Reflect.deleteProperty(target, key);
    else if (isRecord(value)) {
      const below = isRecord(known) ? known : {};
      target[key] = below;
      merge(below, value);
    } else target[key] = value;
  }
}
