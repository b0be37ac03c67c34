// Prints how many files and lines each folder has, by what they are for: `npm run size [-- REVISION]`. Without a revision: the work tree.
import { execFileSync } from 'node:child_process';

const KINDS = ['shipped', 'unit', 'support', 'e2e', 'tools'] as const;
type Kind = (typeof KINDS)[number];
interface Size {
  readonly files: number;
  readonly lines: number;
}

/** Prose, data and generated files do not count. */
const COUNTED = /\.(ts|tsx|go|js|sh|css|html|ya?ml|tpl)$|(^|\/)(Makefile|Dockerfile)$/;

/** @param path from the root */
export function kindOf(path: string): Kind | undefined {
  if (!COUNTED.test(path) || path.startsWith('docs/') || path.includes('/testdata/')) return undefined;
  if (/\.test\.ts$|_test\.go$/.test(path)) return 'unit';
  if (/\/testing\/|^test\//.test(path)) return 'support';
  if (/^(bed|e2e)\//.test(path)) return 'e2e';
  if (/^(bench|build|release)\/|^\.|^[^/]*$/.test(path) && path !== 'holdfast.ts') return 'tools';
  return 'shipped';
}

function sizesOf(revision: string | undefined): Map<string, Map<Kind, Size>> {
  const args = ['grep', '--count', '-I', '', ...(revision === undefined ? [] : [revision]), '--', '.'];
  const output = execFileSync('git', args, { encoding: 'utf8', maxBuffer: 2 ** 26 });
  const folders = new Map<string, Map<Kind, Size>>();
  for (const line of output.trim().split('\n')) {
    const [, path = '', count] = /^(?:[^:]*:)?([^:]+):(\d+)$/.exec(line) ?? [];
    const kind = kindOf(path);
    if (kind === undefined) continue;
    const folder = path.includes('/') ? path.slice(0, path.indexOf('/')) : '.';
    for (const row of [folder, 'all']) {
      const kinds = folders.get(row) ?? new Map<Kind, Size>();
      const { files, lines } = kinds.get(kind) ?? { files: 0, lines: 0 };
      folders.set(row, kinds.set(kind, { files: files + 1, lines: lines + Number(count) }));
    }
  }
  return folders;
}

function print(folders: ReadonlyMap<string, ReadonlyMap<Kind, Size>>): void {
  const cell = (size: Size | undefined) => (size === undefined ? '' : `${size.files} / ${size.lines}`).padStart(14);
  const rows = [...folders].sort(([a], [b]) => Number(a === 'all') - Number(b === 'all') || a.localeCompare(b));
  process.stdout.write(
    `${'files / lines'.padEnd(13)}${KINDS.map((kind) => kind.padStart(14)).join('')}${'all'.padStart(14)}\n`,
  );
  for (const [folder, kinds] of rows) {
    const all = [...kinds.values()].reduce((sum, { files, lines }) => ({ files: sum.files + files, lines: sum.lines + lines })); // oxfmt-ignore
    process.stdout.write(`${folder.padEnd(13)}${KINDS.map((kind) => cell(kinds.get(kind))).join('')}${cell(all)}\n`);
  }
}

if (process.argv[1]?.endsWith('tree-size.ts') === true) print(sizesOf(process.argv[2]));
