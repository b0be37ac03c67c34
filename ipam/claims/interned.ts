/** Texts that may be shared; more than these are hardly the same often. */
const REMEMBERED = 4096;
/** Longer ones are not remembered: they stay in memory for as long as the process runs. */
const LONGEST = 256;

const known = new Map<string, string>();

/** The same text as one string, where a hundred thousand objects say it each with their own. */
export function interned(text: string): string {
  if (text.length > LONGEST) return text;
  const found = known.get(text);
  if (found !== undefined) return found;
  if (known.size < REMEMBERED) known.set(text, text);
  return text;
}
