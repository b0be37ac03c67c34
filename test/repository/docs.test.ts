import { existsSync } from 'node:fs';
import { readFile, readdir } from 'node:fs/promises';
import { basename, dirname, join, normalize } from 'node:path';
import { expect } from 'chai';
import * as names from '../../api/names.js';
import { flagsOfCommands } from '../../cli/command-line.js';
import { variableOf } from '../../process/config/setting.js';
import { anchorsOf, codeOf, flagsIn, headingsOf, linksOf, paragraphsOf, pathsIn, targetsIn } from './documents.js';
import { MANIFEST_KEYS, SETTINGS, renderReference, withRows } from './reference.js';
import { ROOT, findFiles } from '../source-files.js';

/** Folders that git does not keep, or that are not built yet. */
const OTHER_FOLDERS = ['cni', 'cli'];
/** Read by the CNI plugin. */
const PLUGIN_VARIABLES = ['HOLDFAST_SOCKET', 'HOLDFAST_TIMEOUT'];
/** Of the test bed. */
const BED_VARIABLES = ['HOLDFAST_BED_NETWORK'];

/** Characters that a reader sees. A longer paragraph is read by nobody at night. */
const LONGEST_PARAGRAPH = 600;

interface Document {
  readonly path: string;
  readonly text: string;
}

describe('the documents', () => {
  let documents: Document[] = [];
  const folders = new Set(OTHER_FOLDERS);

  before(async () => {
    const entries = await readdir(ROOT, { withFileTypes: true });
    for (const entry of entries) if (entry.isDirectory()) folders.add(entry.name);
    const paths = await findFiles('.md');
    documents = await Promise.all(
      paths.map(async (path) => ({ path, text: await readFile(join(ROOT, path), 'utf8') })),
    );
  });

  /** `document:line: word` for each word that is not known. */
  function unknown(find: (code: string) => string[], isKnown: (word: string) => boolean): string[] {
    return documents.flatMap(({ path, text }) =>
      codeOf(text).flatMap((code) =>
        find(code.text)
          .filter((word) => !isKnown(word))
          .map((word) => `${path}:${code.line}: ${word}`),
      ),
    );
  }

  function documentOf(path: string): string {
    const found = documents.find((document) => document.path === path);
    if (found === undefined) throw new Error(`there is no ${path}`);
    return found.text;
  }

  it('are all in the index of the documentation', () => {
    const index = linksOf(documentOf('docs/README.md')).map((target) => join('docs', target));
    const pages = documents
      .map(({ path }) => path)
      .filter((path) => /^docs\/(?!README|adr\/\d|runbooks\/Holdfast)/.test(path));
    expect(pages).not.to.be.empty;
    expect(index).to.include.members(pages);
  });

  it('name files and folders that exist', () => {
    expect(
      unknown(
        (code) => pathsIn(code, folders),
        (path) => existsSync(join(ROOT, path)),
      ),
    ).to.deep.equal([]);
  });

  it('have no paragraph that is longer than a reader follows: split it', () => {
    const long = documents.flatMap(({ path, text }) =>
      paragraphsOf(text).flatMap((paragraph) => {
        const { length } = paragraph.text;
        return length > LONGEST_PARAGRAPH ? [`${path}:${paragraph.line}: ${length} characters`] : [];
      }),
    );
    expect(long).to.deep.equal([]);
  });

  it('link to files that exist', () => {
    const lost = documents.flatMap(({ path, text }) =>
      linksOf(text)
        .filter((target) => !existsSync(join(ROOT, dirname(path), target)))
        .map((target) => `${path}: ${target}`),
    );
    expect(lost).to.deep.equal([]);
  });

  it('link to headings that exist', () => {
    const lost = documents.flatMap(({ path, text }) =>
      anchorsOf(text)
        .filter(({ target, anchor }) => {
          const file = target === '' ? path : normalize(join(dirname(path), target));
          return !headingsOf(documentOf(file)).includes(anchor);
        })
        .map(({ target, anchor }) => `${path}: ${target}#${anchor}`),
    );
    expect(lost).to.deep.equal([]);
  });

  it('have the pages to which messages link, by the function that names their version', async () => {
    const links: string[] = [];
    const others: string[] = [];
    for (const path of (await findFiles('.ts')).filter(
      (each) => !/\.test\.ts$|\/testing\/|^(bed|e2e|bench|test|release)\//.test(each),
    )) {
      const code = (await readFile(join(ROOT, path), 'utf8')).replace(/^\s*(\/\/|\/?\*).*$/gm, '');
      const pages = code.matchAll(/'((?:how-to|reference|concepts|tutorials|runbooks)\/[\w-]+\.md)(?:#([\w-]+))?'/g);
      for (const [, page = '', anchor] of pages) {
        const headings = headingsOf(documentOf(`docs/${page}`));
        links.push(page);
        if (anchor !== undefined) expect(headings, `${path}: ${page}`).to.include(anchor);
      }
      if (/['"`][^'"`\n]*\bdocs\/[\w-]+\/[\w-]+\.md/.test(code)) others.push(path);
    }
    expect(links.length).to.be.greaterThan(10);
    expect(others).to.deep.equal([]);
  });

  it('name targets of make and scripts of npm that exist', async () => {
    const makefile = await readFile(join(ROOT, 'Makefile'), 'utf8');
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
    expect(
      unknown(
        (code) => targetsIn(code, 'make'),
        (name) => makefile.includes(`\n${name}:`),
      ),
    ).to.deep.equal([]);
    expect(
      unknown(
        (code) => targetsIn(code, 'npm run'),
        (name) => Object.hasOwn(scripts, name),
      ),
    ).to.deep.equal([]);
  });

  it('name flags and variables that exist', () => {
    const settings = Object.values(SETTINGS).flat();
    const flags = [...settings.map(({ flag }) => flag), ...flagsOfCommands(), 'help', 'version'];
    expect(unknown(flagsIn, (flag) => flags.includes(flag))).to.deep.equal([]);
    const variables = [...settings.map(variableOf), ...PLUGIN_VARIABLES, ...BED_VARIABLES];
    const find = (code: string) => code.match(/\bHOLDFAST_[A-Z_]+\b/g) ?? [];
    expect(unknown(find, (variable) => variables.includes(variable))).to.deep.equal([]);
  });

  it('name labels and annotations that exist', () => {
    const keys = new Set<unknown>([...Object.values(names), ...MANIFEST_KEYS]);
    const find = (code: string) => code.match(/\bipam\.holdfast\.dev\/[a-z][a-z0-9-]+/g) ?? [];
    expect(unknown(find, (key) => keys.has(key))).to.deep.equal([]);
  });

  it('show how a backup tool removes each annotation of a claim that only Holdfast may write', () => {
    const written = Object.entries(names).flatMap(([constant, value]) =>
      typeof value === 'string' && constant.startsWith('CLAIM_') && constant !== 'CLAIM_REFERENCES_LABEL' ? value : [],
    );
    const page = documentOf('docs/how-to/backup-and-restore.md');
    const [, removed = ''] = page.split('removes them:');
    const kept = written.filter((key) => key.startsWith('ipam.holdfast.dev/') && !removed.includes(`${key}: null`));
    expect(kept).to.deep.equal([]);
  });

  it('have reference pages that say what the code says: `npm run reference` writes them', async () => {
    for (const { path, present, expected } of await renderReference()) {
      expect(present.split('\n'), `${path}: run \`npm run reference\``).to.deep.equal(expected.split('\n'));
    }
  });

  it('number the decisions without a gap, and list each with the title of its record', () => {
    const records = documents.filter(({ path }) => /^docs\/adr\/\d/.test(path));
    expect(records).not.to.be.empty;
    const list = records.flatMap(({ path, text }) => {
      const number = Number(basename(path).slice(0, 4));
      const [, title = '', own] = /^# ((\d+)\. .*)$/m.exec(text) ?? [];
      expect(Number(own), path).to.equal(number);
      const [, contained = ''] = /^# .*\n\nContains decisions? ([\d, and]+)\.$/m.exec(text) ?? [];
      const others = (contained.match(/\d+/g) ?? []).map(Number);
      const link = `[${title}](${basename(path)})`;
      return [
        { number, line: `- ${link}` },
        ...others.map((other) => ({ number: other, line: `- ${other}: in ${link}` })),
      ];
    });
    list.sort((a, b) => a.number - b.number);
    expect(list.map(({ number }) => number)).to.deep.equal(list.map((_, index) => index + 1));
    expect(documentOf('docs/adr/README.md').match(/^- .*$/gm)).to.deep.equal(list.map(({ line }) => line));
    for (const { path, text } of records) {
      const headings = [...text.matchAll(/^## (.*)$/gm)].map(([, heading]) => heading);
      expect(headings, path).to.deep.equal(['Context', 'Decision', 'Consequences']);
    }
  });

  it('link to each record of decisions from a page whose reader asks why', () => {
    const pages = documents.filter(({ path }) => /^docs\/(?!adr\/)/.test(path));
    const linked = new Set(
      pages.flatMap(({ path, text }) => linksOf(text).map((target) => normalize(join(dirname(path), target)))),
    );
    const records = documents.map(({ path }) => path).filter((path) => /^docs\/adr\/\d/.test(path));
    expect(records).not.to.be.empty;
    expect(records.filter((path) => !linked.has(path))).to.deep.equal([]);
  });
});

describe('reading documents', () => {
  it('replaces the rows of a generated table, and keeps the column that people write', () => {
    const page = '# A\n\n| key | help | note |\n|---|---|---|\n| `a` | old | mine |\n| `gone` | x | y |\n\nEnd';
    const rows = new Map([
      ['`b`', ['new']],
      ['`a`', ['fresh']],
    ]);
    expect(withRows(page, '# A', rows)).to.equal(
      '# A\n\n| key | help | note |\n|---|---|---|\n| `b` | new |  |\n| `a` | fresh | mine |\n\nEnd',
    );
  });

  it('finds code in backticks and in fenced blocks', () => {
    expect(codeOf('a `b c` d `e`\n```\nf `g`\n```\nh')).to.deep.equal([
      { text: 'b c', line: 1 },
      { text: 'e', line: 1 },
      { text: 'f `g`', line: 3 },
    ]);
  });

  it('finds paragraphs, without targets of links, code and tables', () => {
    const page = '# A\n\none\n[two](x.md#y)\n\n```\ncode\n```\n- three\n- four\n\n  five\n\n| a |\n|---|';
    expect(paragraphsOf(page)).to.deep.equal([
      { line: 3, text: 'one two' },
      { line: 9, text: '- three' },
      { line: 10, text: '- four' },
      { line: 12, text: 'five' },
    ]);
  });

  const paths = [
    { given: 'kube/x.ts and api/', expect: ['kube/x.ts', 'api/'] },
    { given: 'kubectl apply -f kube/x.yaml', expect: ['kube/x.yaml'] },
    { given: 'build.js', expect: ['build.js'] },
    { given: 'k8s.cni.cncf.io/v1alpha1 <here>/kube tls.crt namespace/name', expect: [] },
  ];
  for (const { given, expect: wanted } of paths) {
    it(`finds the paths in: ${given}`, () => {
      expect(pathsIn(given, new Set(['kube', 'api']))).to.deep.equal(wanted);
    });
  }

  it('finds targets', () => {
    expect(targetsIn('cd x && make demo KEEP=1', 'make')).to.deep.equal(['demo']);
    expect(targetsIn('A=b npm run test:e2e -- x', 'npm run')).to.deep.equal(['test:e2e']);
  });

  it('finds our own flags, not those of other programs', () => {
    expect(flagsIn('holdfast all --log-level=debug --leader-elect')).to.deep.equal(['log-level', 'leader-elect']);
    expect(flagsIn('kubectl delete --cascade=orphan')).to.deep.equal([]);
  });

  it('finds links to files', () => {
    expect(linksOf('[a](docs/a.md#b) [c](https://d.e) [f](#g)')).to.deep.equal(['docs/a.md']);
  });
});
