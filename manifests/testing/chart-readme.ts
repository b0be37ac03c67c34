import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseDocument, isMap, isScalar, type YAMLMap } from 'yaml';

const CHART = join(import.meta.dirname, '..', 'chart');
/** A comment of values.yaml that describes the value below it, as in helm-docs. */
const DESCRIPTION = /^ -- (.*)$/m;

export const CHART_README = join(CHART, 'README.md');

interface ValueRow {
  readonly path: string;
  readonly defaultValue: unknown;
  readonly description: string;
}

/** Returns the README of the chart, whose table has a row for each value. */
export async function chartReadme(): Promise<string> {
  const rows = (await chartValues()).map(
    ({ path, defaultValue, description }) => `| \`${path}\` | \`${JSON.stringify(defaultValue)}\` | ${description} |`,
  );
  return [
    '# Helm chart of Holdfast',
    '',
    '<!-- `npm run reference` generates this file from values.yaml. -->',
    '',
    '[Install](../../docs/how-to/install.md) says how to use the chart. Unknown values are refused.',
    '',
    '| value | default | meaning |',
    '|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

/** @throws {Error} if a value has no description */
export async function chartValues(): Promise<ValueRow[]> {
  const { contents } = parseDocument(await readFile(join(CHART, 'values.yaml'), 'utf8'));
  return rowsOf(contents as unknown as YAMLMap, '');
}

function rowsOf(map: YAMLMap, prefix: string): ValueRow[] {
  let inherited = map.commentBefore ?? '';
  return map.items.flatMap(({ key, value }) => {
    if (!isScalar(key)) return [];
    const path = prefix + String(key.value);
    const [, description] = DESCRIPTION.exec(key.commentBefore ?? inherited) ?? [];
    inherited = '';
    if (isMap(value) && value.items.length > 0) return rowsOf(value, `${path}.`);
    if (description === undefined) throw new Error(`the value ${path} of the chart has no comment that begins with --`);
    const defaultValue = isMap(value) ? {} : ((value as { toJSON(): unknown } | null)?.toJSON() ?? null);
    return [{ path, defaultValue, description }];
  });
}
