import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '../../api/json.js';
import type { KubeObject } from '../../api/meta.js';

/** The fields of an object that are no objects, by their path as JSON. */
type Fields = ReadonlyMap<string, unknown>;

/**
 * Which managers of server-side apply have set which fields. A list is one field, as in custom resources by default. Other writes own nothing,
 * unlike on a real server.
 */
export class FieldOwners {
  /** UID of the object → manager → paths. */
  readonly #owned = new Map<string, Map<string, Set<string>>>();

  /** Returns the managers of fields that the configuration would change. */
  conflicts(found: KubeObject, applied: object, manager: string): string[] {
    const [before, wanted] = [fieldsOf(found), fieldsOf(applied)];
    const changed = [...wanted].filter(([path, value]) => !isDeepStrictEqual(before.get(path), value));
    const others = [...this.#managersOf(found)].filter(([other]) => other !== manager);
    return others.filter(([, paths]) => changed.some(([path]) => paths.has(path))).map(([other]) => other);
  }

  /** Returns the object with the configuration, and without fields that only this manager had set and no longer sets. */
  merge(found: KubeObject, applied: object, manager: string): KubeObject {
    const merged = structuredClone(found);
    const wanted = fieldsOf(applied);
    const managers = this.#managersOf(found);
    for (const path of managers.get(manager) ?? []) {
      const isShared = [...managers].some(([other, paths]) => other !== manager && paths.has(path));
      if (!wanted.has(path) && !isShared) setField(merged, path, undefined);
    }
    for (const [path, value] of wanted) setField(merged, path, value);
    return merged;
  }

  /** Records what a manager has set. Others no longer own fields that it has changed. */
  record(found: KubeObject | undefined, stored: KubeObject, applied: object, manager: string): void {
    const managers = this.#managersOf(stored);
    const [before, wanted] = [fieldsOf(found ?? {}), fieldsOf(applied)];
    for (const [path, value] of wanted) {
      if (!isDeepStrictEqual(before.get(path), value)) for (const paths of managers.values()) paths.delete(path);
    }
    managers.set(manager, new Set(wanted.keys()));
    this.#owned.set(stored.metadata.uid ?? '', managers);
  }

  #managersOf({ metadata: { uid = '' } }: KubeObject): Map<string, Set<string>> {
    return this.#owned.get(uid) ?? new Map<string, Set<string>>();
  }
}

function fieldsOf(object: object, above: readonly string[] = []): Fields {
  return new Map(
    Object.entries(object).flatMap(([key, value]: [string, unknown]) => {
      const path = [...above, key];
      return isRecord(value) ? [...fieldsOf(value, path)] : [[JSON.stringify(path), value] as const];
    }),
  );
}

function setField(object: object, path: string, value: unknown): void {
  const keys = JSON.parse(path) as string[];
  const last = keys.pop() ?? '';
  let at = object as Record<string, unknown>;
  for (const key of keys) {
    if (!isRecord(at[key])) at[key] = {};
    at = at[key] as Record<string, unknown>;
  }
  if (value === undefined) Reflect.deleteProperty(at, last);
  else at[last] = value;
}
