/** Maximum number of shared texts: further ones are rarely equal. */
const MAX_INTERNED = 4096;
/** Longer texts are not shared, because shared texts stay in memory as long as the process. */
const MAX_LENGTH = 256;

const known = new Map<string, string>();

/** Returns an equal string that is shared, because a hundred thousand objects would each have their own copy. */
export function intern(text: string): string {
  if (text.length > MAX_LENGTH) return text;
  const found = known.get(text);
  if (found !== undefined) return found;
  if (known.size < MAX_INTERNED) known.set(text, text);
  return text;
}
