/** A JSON object: not null, not a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Returns the value if it is an object, otherwise an empty object. */
export function asRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** Returns the value if it is a list, otherwise an empty list. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** Returns the elements of a list that are objects. */
export function recordsIn(list: unknown): Record<string, unknown>[] {
  return asList(list).filter(isRecord);
}

/** Returns the value if it is a string, otherwise an empty string. */
export function asString(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

const MAX_SHOWN_VALUE = 80;
const MAX_SHOWN_PATH = 300;

/** Cuts a string that others wrote, for messages. The result is a copy, because a slice would keep the whole string in memory. */
export function truncate(text: string, maxLength = MAX_SHOWN_PATH): string {
  return text.length <= maxLength ? text : `${Buffer.from(text.slice(0, maxLength)).toString()}…`;
}

/** Names the first texts, as `a, b and 3 more`. @param total how many there are. Default: as many as are given */
export function nameFirst(texts: readonly string[], most: number, total = texts.length, separator = ', '): string {
  const named = texts.slice(0, most);
  const more = total - named.length;
  return `${named.join(separator)}${more > 0 ? ` and ${more} more` : ''}`;
}

/** Describes a value in a message. The result is short for any value. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'absent';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return JSON.stringify(typeof value === 'string' ? value.slice(0, MAX_SHOWN_VALUE) : value);
}

type WithoutUndefined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Returns the fields that are not undefined. If all are defined it returns the literal itself, which is smaller than an object that has grown. */
export function omitUndefined<T extends object>(fields: T): WithoutUndefined<T> {
  if (!Object.values(fields).includes(undefined)) return fields;
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as WithoutUndefined<T>;
}
