/** How an API server begins the field in each object. No text in JSON contains it, because quotes in texts are escaped. */
const BEGINNING = Buffer.from(',"managedFields":[');
const [QUOTE, BACKSLASH, OPEN, CLOSE] = [0x22, 0x5c, 0x5b, 0x5d];

/**
 * Removes the managedFields from JSON, whose bytes it overwrites. They are half of a real object, and of the time to parse it. A list of
 * this name elsewhere in an object is removed, too: no schema has one, and nobody reads one that a schema leaves open.
 */
export function withoutManagedFields(json: Buffer): Buffer {
  let [length, from] = [0, 0];
  const keepUntil = (end: number) => {
    json.copyWithin(length, from, end);
    length += end - from;
  };
  for (let at = json.indexOf(BEGINNING); at >= 0; at = json.indexOf(BEGINNING, from)) {
    keepUntil(at);
    from = endOfList(json, at + BEGINNING.length);
  }
  keepUntil(json.length);
  return json.subarray(0, length);
}

/** @param at behind the bracket that opens the list */
function endOfList(json: Buffer, at: number): number {
  let depth = 1;
  while (depth > 0 && at < json.length) {
    const byte = json[at++];
    if (byte === QUOTE) at = endOfText(json, at);
    else if (byte === OPEN) depth++;
    else if (byte === CLOSE) depth--;
  }
  return at;
}

/** @param at behind the first quote */
function endOfText(json: Buffer, at: number): number {
  while (at < json.length && json[at] !== QUOTE) at += json[at] === BACKSLASH ? 2 : 1;
  return at + 1;
}
