type WithoutUndefined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

/** Returns the fields that are not undefined. */
export function omitUndefined<T extends object>(fields: T): WithoutUndefined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as WithoutUndefined<T>;
}

/** Returns the fields with null instead of undefined, for a merge patch that removes them. */
export function undefinedToNull(fields: object): object {
  return Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, (value as unknown) ?? null]));
}
