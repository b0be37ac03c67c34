import { createHash } from 'node:crypto';

/** Returns the first `length` hex digits, in lower case, of the SHA-256 of a text's UTF-8 bytes. */
export function shortHash(text: string, length: number): string {
  return createHash('sha256').update(text, 'utf8').digest('hex').slice(0, length);
}
