import { setMostRecent } from '../kube/cache.js';

/** Values that many objects have are in memory once. The most recent ones are kept, so that nobody can crowd out the frequent ones. */
const MAX_SHARED = 4096;
/** Longer texts, and values with a longer text, are not shared: they are rarely equal, and would stay in memory. */
const MAX_LENGTH = 512;

const texts = new Map<string, string>();
const values = new Map<string, unknown>();

/** Returns an equal text that is shared, because a hundred thousand objects would each have their own copy. */
export function intern(text: string): string {
  if (text.length > MAX_LENGTH) return text;
  const shared = texts.get(text) ?? text;
  setMostRecent(texts, shared, shared, MAX_SHARED);
  return shared;
}

/** Returns an equal value of JSON that is shared. Nobody may change it. */
export function share<T>(value: T): T {
  const text = JSON.stringify(value) as string | undefined;
  if (text === undefined || text.length > MAX_LENGTH) return value;
  const shared = values.has(text) ? (values.get(text) as T) : value;
  setMostRecent(values, text, shared, MAX_SHARED);
  return shared;
}
