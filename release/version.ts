import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** https://semver.org, without build metadata: a tag of an image cannot contain "+". */
const SEMVER =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-(0|[1-9]\d*|\d*[a-z-][0-9a-z-]*)(\.(0|[1-9]\d*|\d*[a-z-][0-9a-z-]*))*)?$/i;
const EXAMPLE = 'make release VERSION=1.2.3';

/**
 * Checks what a user gave as VERSION.
 * @returns the version, without "v"
 * @throws {Error}
 */
export function parseVersion(text: string): string {
  if (text === '') throw new Error(`VERSION is missing: ${EXAMPLE}`);
  if (/^v\d/.test(text)) throw new Error(`VERSION ${text} must not begin with "v": ${EXAMPLE}`);
  if (text.includes('+')) throw new Error(`VERSION ${text} has build metadata, which a tag of an image cannot contain`);
  if (!SEMVER.test(text))
    throw new Error(`VERSION ${text} is not a semantic version such as 1.2.3 or 1.2.3-rc.1: https://semver.org`);
  return text;
}

export function isPrerelease(version: string): boolean {
  return version.includes('-');
}

interface VersionPlace {
  /** Files that contain the version. */
  readonly files: RegExp;
  /** Matches what stands before the version. */
  readonly before: string;
  /** Of the file from its beginning; all by default. */
  readonly count?: number;
}

const PLACES: readonly VersionPlace[] = [
  { files: /^package\.json$/, before: '"version": "', count: 1 },
  // its own version, and that of its root package
  { files: /^package-lock\.json$/, before: '"version": "', count: 2 },
  { files: /^process\/version\.ts$/, before: `VERSION = '` },
  { files: /^manifests\/.*\.(yaml|md)$|^docs\/how-to\/.*\.md$/, before: 'holdfast:' },
  { files: /^manifests\/chart\/Chart\.yaml$/, before: '^(?:version|appVersion): "?' },
];

/** @returns the text of a file, with the version `to` in each place that says the version `from` */
export function withVersion(path: string, text: string, { from, to }: { from: string; to: string }): string {
  return PLACES.filter(({ files }) => files.test(path)).reduce((result, { before, count = Infinity }) => {
    let left = count;
    const place = new RegExp(`(${before})${from.replaceAll('.', '\\.')}(?![\\w.-])`, 'gm');
    return result.replace(place, (found, start: string) => (left-- > 0 ? start + to : found));
  }, text);
}

/** Sets the version of a tree in all places. */
export async function setVersion(root: string, paths: readonly string[], to: string): Promise<void> {
  const from = await readVersion(root);
  for (const path of paths) {
    if (!PLACES.some(({ files }) => files.test(path))) continue;
    const text = await readFile(join(root, path), 'utf8');
    const changed = withVersion(path, text, { from, to });
    if (changed !== text) await writeFile(join(root, path), changed);
  }
}

export async function readVersion(root: string): Promise<string> {
  return (JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }).version;
}
