/** Values that differ each time: figures and ages. */
const VARYING_VALUES = [
  { page: String.raw`\d+\.\d+(?:\/\d+\.\d+)*`, real: String.raw`\d+(?:\.\d+)?(?:\/\d+(?:\.\d+)?)*` },
  { page: String.raw`(?<=^| )(?:\d+[dhms]){1,2}(?= |$)`, real: String.raw`(?:\d+[dhms]){1,2}(?: \(x\d+ over \S+\))?` },
  { page: String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`, real: String.raw`\S+Z` },
];
/** Names that differ between clusters, but are always the same on one cluster. */
const NAMES = [
  { page: String.raw`\d{1,3}(?:\.\d{1,3}){3}`, real: String.raw`\d{1,3}(?:\.\d{1,3}){3}` },
  { page: String.raw`\d{1,3}(?:-\d{1,3}){3}`, real: String.raw`\d{1,3}(?:-\d{1,3}){3}` },
  { page: String.raw`\bnode-\d+\b`, real: String.raw`[a-z0-9][a-z0-9.-]*` },
  { page: String.raw`\bvirt-launcher-[a-z0-9-]+-[a-z0-9]{5}\b`, real: String.raw`virt-launcher-[a-z0-9-]+` },
  { page: String.raw`\bkubevirt-migrate-vm-[a-z0-9]{5}\b`, real: String.raw`kubevirt-migrate-vm-[a-z0-9]+` },
];
const EVERY_NAME = new RegExp(NAMES.map(({ page }) => page).join('|'), 'g');
/** Names come first because an address looks like figures. */
const PLACEHOLDERS = new RegExp([...NAMES, ...VARYING_VALUES].map(({ page }) => `(${page})`).join('|'), 'g');
/** A line that stands for any number of lines, or a word that stands for any word. */
const ELLIPSIS = '…';

type ActualNames = ReadonlyMap<string, string>;

/** Maps the names on a page to those of this cluster, one to one. */
export class OutputMatcher {
  #meanings: ActualNames = new Map();

  /** Replaces the names of the page by those of this cluster, as far as they are known. */
  substitute(text: string): string {
    return text.replace(EVERY_NAME, (name) => likePlaceholder(name, this.#meanings.get(withDots(name))) ?? name);
  }

  /**
   * Whether the actual output is that of the page, apart from the order of lines, spaces, figures and ages. A name that the
   * page shows for the first time is from now on mapped to the actual one.
   */
  matches(shown: readonly string[], seen: readonly string[]): boolean {
    const wanted = shown.map(normalizeSpaces).filter((line) => line !== '' && line !== ELLIPSIS);
    const found = seen.map(normalizeSpaces).filter((line) => line !== '');
    if (found.length !== wanted.length && !shown.includes(ELLIPSIS)) return false;
    const meanings = matchAll(wanted, found, this.#meanings);
    if (meanings === undefined) return false;
    this.#meanings = meanings;
    return true;
  }
}

function matchAll(
  [first, ...rest]: readonly string[],
  seen: readonly string[],
  known: ActualNames,
): ActualNames | undefined {
  if (first === undefined) return known;
  for (const [index, line] of seen.entries()) {
    const meanings = matchLine(first, line, known);
    const all = meanings && matchAll(rest, seen.toSpliced(index, 1), meanings);
    if (all !== undefined) return all;
  }
  return undefined;
}

function matchLine(shown: string, seen: string, known: ActualNames): ActualNames | undefined {
  const names: string[] = [];
  let pattern = '';
  let from = 0;
  for (const match of shown.matchAll(PLACEHOLDERS)) {
    const kind = (match.slice(1) as (string | undefined)[]).findIndex((text) => text !== undefined);
    const real = [...NAMES, ...VARYING_VALUES][kind]?.real ?? '';
    pattern += escape(shown.slice(from, match.index)) + (kind < NAMES.length ? `(${real})` : real);
    if (kind < NAMES.length) names.push(withDots(match[0]));
    from = match.index + match[0].length;
  }
  const values = new RegExp(`^${pattern}${escape(shown.slice(from))}$`).exec(seen)?.slice(1);
  return (
    values && names.reduce<ActualNames | undefined>((all, name, index) => withName(all, name, values[index]), known)
  );
}

function withName(known: ActualNames | undefined, name: string, value = ''): ActualNames | undefined {
  if (known === undefined) return undefined;
  const meaning = known.get(name);
  if (meaning !== undefined) return meaning === withDots(value) ? known : undefined;
  if ([...known.values()].includes(withDots(value))) return undefined;
  return new Map([...known, [name, withDots(value)]]);
}

/** Names of leases contain addresses with dashes. */
function withDots(name: string): string {
  return /^\d+(-\d+){3}$/.test(name) ? name.replaceAll('-', '.') : name;
}

function likePlaceholder(like: string, meaning: string | undefined): string | undefined {
  return like === withDots(like) ? meaning : meaning?.replaceAll('.', '-');
}

function normalizeSpaces(line: string): string {
  return line.trim().replace(/\s+/g, ' ');
}

function escape(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&').replaceAll(ELLIPSIS, '\\S+');
}
