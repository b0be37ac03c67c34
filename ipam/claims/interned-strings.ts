/** Texts that may be shared; more than these are hardly the same often. */
const MAX_INTERNED = 4096;
/** Longer ones are not remembered: they stay in memory for as long as the process runs. */
const MAX_LENGTH = 256;

const known = new Map<string, string>();

/** The same text as one string, where a hundred thousand objects say it each with their own. */
export function intern(text: string): string {
  if (text.length > MAX_LENGTH) return text;
  const found = known.get(text);
  if (found !== undefined) return found;
  if (known.size < MAX_INTERNED) known.set(text, text);
  return text;
}
