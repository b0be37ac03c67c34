import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT, findFiles } from '../source-files.js';

const TITLE = /\b(describe|it)\w*\(\s*(['"`])((?:\\.|(?!\2).)*)\2/gsu;

interface Titles {
  readonly suites: readonly string[];
  readonly tests: readonly string[];
}

function titlesOf(source: string): Titles {
  const found = [...source.matchAll(TITLE)].map(([, kind, , text = '']) => ({ kind, text: asPattern(text) }));
  const textsOf = (kind: string) => found.filter((title) => title.kind === kind).map(({ text }) => text);
  return { suites: textsOf('describe'), tests: textsOf('it') };
}

/** A value of a template can be any text. */
function asPattern(title: string): string {
  return title
    .split(/\$\{[^}]*\}/u)
    .map((text) => text.replaceAll(/\\(.)/gu, '$1').replaceAll(/[$()*+.?[\\\]^{|}]/gu, '\\$&'))
    .join('.+');
}

function hasTest({ suites, tests }: Titles, proof: string): boolean {
  const isTitle = (pattern: string) => new RegExp(`^${pattern}$`, 'u').test(proof);
  return suites.some((suite) => tests.some((test) => isTitle(`${suite} (?:.+ )?${test}`)));
}

/** The last cell of each row of its tables, without the head. */
function proofsOf(page: string): { row: string; proofs: string[] }[] {
  const rows = page.split('\n').filter((line) => line.startsWith('| '));
  return rows
    .filter((row) => !row.endsWith('| proof |'))
    .map((row) => {
      const last = row.split(' | ').at(-1) ?? '';
      return { row, proofs: [...last.matchAll(/`([^`]+)`/gu)].map(([, title = '']) => title) };
    });
}

describe('The table of compatibility', () => {
  it('accepts only the full title of a test as a proof', () => {
    const titles = titlesOf(
      "describe('A VM', () => { it(`keeps ${count} addresses`, f); itOnBed('isn\\'t moved', f); });",
    );
    expect(hasTest(titles, 'A VM keeps two addresses')).to.equal(true);
    expect(hasTest(titles, "A VM isn't moved")).to.equal(true);
    expect(hasTest(titles, 'A VM keeps two')).to.equal(false);
    expect(hasTest(titles, 'keeps two addresses')).to.equal(false);
  });

  it('proves each row by tests that exist', async () => {
    const paths = [...(await findFiles('.e2e.ts')), ...(await findFiles('.test.ts'))];
    const files = await Promise.all(paths.map(async (path) => titlesOf(await readFile(join(ROOT, path), 'utf8'))));
    const rows = proofsOf(await readFile(join(ROOT, 'docs/compatibility.md'), 'utf8'));
    expect(rows).not.to.be.empty;
    expect(rows.filter(({ proofs }) => proofs.length === 0).map(({ row }) => row)).to.deep.equal([]);
    const lost = rows.flatMap(({ proofs }) => proofs.filter((proof) => !files.some((file) => hasTest(file, proof))));
    expect(lost).to.deep.equal([]);
  });
});
