/** A JSON object: not null, not a list. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Of what is no object: an empty one. */
export function asRecord(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : {};
}

/** Of what is no list: an empty one. */
export function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** The objects of a list. */
export function recordsIn(list: unknown): Record<string, unknown>[] {
  return asList(list).filter(isRecord);
}

/** Of what is no text: an empty one. */
export function asString(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

const MAX_SHOWN_VALUE = 80;
const MAX_SHOWN_PATH = 300;

/** The beginning of a text that others wrote, for messages. Copied, because a slice would keep the whole text in memory. */
export function truncate(text: string, maxLength = MAX_SHOWN_PATH): string {
  return text.length <= maxLength ? text : `${Buffer.from(text.slice(0, maxLength)).toString()}…`;
}

/** A value as a message shows it: short, however long, deep or odd it is. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'absent';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object' && value !== null) return 'an object';
  return JSON.stringify(typeof value === 'string' ? value.slice(0, MAX_SHOWN_VALUE) : value);
}
