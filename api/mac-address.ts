const PAIRS = /^[0-9a-f]{2}([:-])[0-9a-f]{2}(\1[0-9a-f]{2}){4}$/;
const QUADS = /^[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}$/;
const LEASE_MAC_FORM = /^[0-9a-f]{2}(:[0-9a-f]{2}){5,19}$/;

/** Normalizes a MAC address of six bytes: lower case, with colons. @returns undefined if the text is not one */
export function parseMac(text: string): string | undefined {
  const lower = text.toLowerCase();
  if (!PAIRS.test(lower) && !QUADS.test(lower)) return undefined;
  if (lower.charAt(2) === ':') return lower;
  return lower.replaceAll(/[^0-9a-f]/g, '').replaceAll(/(..)(?=.)/g, '$1:');
}

/** Like `parseMac`, for pairs of digits, but of any length that a lease may have: InfiniBand uses twenty bytes. */
export function parseLeaseMac(text: string): string | undefined {
  const lower = text.toLowerCase().replaceAll('-', ':');
  return LEASE_MAC_FORM.test(lower) ? lower : undefined;
}
