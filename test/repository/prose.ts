/** Checks the prose of the repository with vale and the style in test/vale: `tsx test/repository/prose.ts [path]…`. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { homedir, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';
import { ROOT, findFiles } from '../source-files.js';

/** The newest version whose modules all have the module path that they declare. */
const VALE = 'github.com/errata-ai/vale/v3/cmd/vale@v3.18.0';
const CONFIG = join(ROOT, 'test/vale/vale.ini');
/** The style has examples of what it rules out. */
const EXEMPT = /^test\/(repository\/prose|vale\/)/;
const WORDS = /[A-Za-z][\w'’-]*[,;:.]? +[a-z][\w'’-]*[,;:.]? +[a-z][\w'’-]*[,;:.]? +[a-z]/;

/** A comment, a string or a paragraph, and its first line in the source, 1-based. */
export interface Passage {
  readonly line: number;
  readonly text: string;
}

/** A line of a text of YAML that spans several lines. */
const CONTINUATION = /^\s+(?=\S)(?![\w.-]+:(?: |$)|- |[#{[])(.*\S)/;

/** Finds the text that people read in code: comments, and strings that are prose. */
export function passagesOf(path: string, text: string): Passage[] {
  if (path.endsWith('.ts')) return passagesOfTypeScript(text);
  const prose = path.endsWith('.go') ? /^\s*\/\/ (.*)$/ : /^\s*(?:- )?(?:# |(?:description|message): ?['">-]*)(.*)$/;
  const passages: { line: number; text: string }[] = [];
  for (const [index, line] of text.split('\n').entries()) {
    const last = passages.at(-1);
    const continues = last !== undefined && last.line > 0 && /\.ya?ml$/.test(path);
    const [, found] = prose.exec(line) ?? (continues ? CONTINUATION.exec(line) : null) ?? [];
    if (found === undefined) passages.push({ line: 0, text: '' });
    else if (last !== undefined && last.line > 0) last.text += ` ${found}`;
    else passages.push({ line: index + 1, text: found });
  }
  return passages.filter(({ line }) => line > 0);
}

function passagesOfTypeScript(text: string): Passage[] {
  const source = ts.createSourceFile('source.ts', text, ts.ScriptTarget.Latest);
  const passages = new Map<number, string>();
  const lineAt = (position: number) => source.getLineAndCharacterOfPosition(position).line + 1;
  const visit = (node: ts.Node): void => {
    const comments = [
      ...(ts.getLeadingCommentRanges(text, node.pos) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.end) ?? []),
    ];
    for (const { pos, end } of comments) passages.set(pos, text.slice(pos, end));
    if (ts.isStringLiteralLike(node) && WORDS.test(node.text))
      passages.set(node.getStart(source), node.text.replaceAll('\n', '\n\n'));
    if (ts.isTemplateExpression(node)) {
      const whole = [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('X');
      if (WORDS.test(whole)) passages.set(node.getStart(source), whole.replaceAll('\n', '\n\n'));
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return [...passages].flatMap(([position, raw]) =>
    partsOf(raw).map((part) => ({ line: lineAt(position), text: part })),
  );
}

/** The text of a comment or string in parts: tags, paragraphs, elements of lists. Indented code is left out. */
function partsOf(raw: string): string[] {
  const text = raw
    .replace(/^\s*\* {4,}.*$/gm, '')
    .replace(/^\/\*\*?|\s*\*\/$|^\/\/+|^\s*\*/gm, '')
    .replace(/@(?:param|throws) (?:\{\w+\} )?\S+|@\w+/g, '\n\n');
  const parts = text.split(/\n\s*(?:\n|\||- |\d+\. )|; (?=\d)/).map((part) => part.replace(/\s+/g, ' ').trim());
  return parts.filter((part) => part !== '');
}

/** What vale finds, as `path:line: message`. */
export async function lint(files: ReadonlyMap<string, string>, vale: string): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), 'prose-'));
  try {
    const lines = new Map<string, readonly number[]>();
    for (const [path, text] of files) {
      const isWhole = path.endsWith('.md');
      const passages = isWhole ? [] : passagesOf(path, text);
      lines.set(
        `${path}.md`,
        isWhole ? text.split('\n').map((_, index) => index + 1) : passages.flatMap(({ line }) => [line, line]),
      );
      const target = join(folder, `${path}.md`);
      await mkdir(dirname(target), { recursive: true });
      await writeFile(target, isWhole ? text : passages.map((passage) => `${passage.text}\n\n`).join(''));
    }
    const { stdout, stderr, status } = spawnSync(vale, ['--config', CONFIG, '--output', 'line', '.'], {
      cwd: folder,
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
    if (status !== 0 && stdout === '') throw new Error(`vale failed: ${stderr}`);
    return stdout.split('\n').flatMap((alert) => {
      const [, path = '', line = '', message = ''] = /^(.*?\.md):(\d+):\d+:\S+?:(.*)$/.exec(alert) ?? [];
      const at = lines.get(path)?.[Number(line) - 1];
      return path === '' ? [] : [`${path.slice(0, -3)}:${String(at)}: ${message}`];
    });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** The path of vale, which is built once. Undefined without a C compiler, which its parsers need. */
export async function ensureVale(): Promise<string | undefined> {
  const cache = join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'holdfast', 'bin');
  const folder = join(cache, `vale-${VALE.replace(/^.*@/, '')}`);
  if (existsSync(join(folder, 'vale'))) return join(folder, 'vale');
  if (spawnSync('cc', ['--version']).status !== 0) return undefined;
  await mkdir(cache, { recursive: true });
  const scratch = await mkdtemp(join(cache, '.build-'));
  console.error('building vale (once; one or two minutes)');
  const env = { ...process.env, GOBIN: scratch, CGO_ENABLED: '1', CGO_CFLAGS: '-w' };
  const { error, status, stderr } = spawnSync('go', ['install', '-trimpath', '-ldflags=-s -w', VALE], {
    env,
    encoding: 'utf8',
  });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`go install ${VALE} failed:\n${stderr.slice(-2000)}`);
  await rename(scratch, folder).catch(() => rm(scratch, { recursive: true, force: true }));
  return join(folder, 'vale');
}

async function main(roots: readonly string[]): Promise<number> {
  const vale = await ensureVale();
  if (vale === undefined) {
    console.error('prose is not checked: vale needs a C compiler (cc)');
    return 0;
  }
  const found = (await Promise.all(['.md', '.ts', '.go', '.yaml', '.yml'].map((ending) => findFiles(ending)))).flat();
  const paths = found.filter(
    (path) => !EXEMPT.test(path) && (roots.length === 0 || roots.some((root) => path.startsWith(root))),
  );
  const files = new Map(
    await Promise.all(
      paths.map(async (path): Promise<[string, string]> => [path, await readFile(join(ROOT, path), 'utf8')]),
    ),
  );
  const alerts = await lint(files, vale);
  for (const alert of alerts) console.error(alert);
  if (alerts.length > 0) console.error(`${String(alerts.length)} problems of prose in ${String(files.size)} files`);
  return alerts.length > 0 ? 1 : 0;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) process.exitCode = await main(process.argv.slice(2));
