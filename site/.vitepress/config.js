import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { URL } from 'node:url';
import { defineConfig } from 'vitepress';

// `make docs` builds the site. VitePress fails if a link leads to no page.
const DOCS = resolve(import.meta.dirname, '../dist/source'); // a copy, because VitePress looks for its packages from there
const ROOT = dirname(DOCS);
// Of the site that .github/workflows/docs.yaml publishes: a folder for each version.
const { DOCS_SITE = 'http://localhost/', DOCS_VERSION = '', REPOSITORY = 'https://example.com/holdfast' } = process.env;
const SECTIONS = {
  tutorials: 'Tutorials',
  'how-to': 'How-to guides',
  reference: 'Reference',
  concepts: 'Concepts',
  runbooks: 'Runbooks',
  adr: 'Decisions',
};

const sidebar = Object.entries(SECTIONS).map(([folder, text]) => ({
  text,
  collapsed: folder === 'adr' || folder === 'runbooks',
  items: readdirSync(join(DOCS, folder))
    .filter((file) => file.endsWith('.md') && file !== 'README.md')
    .map((file) => ({ text: titleOf(join(DOCS, folder, file)), link: `/${folder}/${file.slice(0, -3)}` })),
}));

function titleOf(file) {
  return /^# (.*)$/m.exec(readFileSync(file, 'utf8'))[1];
}

/** The anchors of GitHub, which the documents use. */
function slugify(text) {
  return text
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-');
}

/** Links to files beside docs/ lead to the repository; test/repository/docs.test.ts checks that the files exist. */
function linkToRepository(markdown) {
  markdown.core.ruler.after('inline', 'repository-links', ({ env, tokens }) => {
    const links = tokens.flatMap(({ children }) => children ?? []).filter(({ type }) => type === 'link_open');
    for (const link of links) {
      const href = link.attrGet('href') ?? '';
      if (/^(?:[a-z]+:|#)/.test(href)) continue;
      const [path, anchor] = href.split('#', 2);
      const hash = anchor === undefined ? '' : `#${anchor}`;
      const target = resolve(dirname(join(DOCS, env.relativePath ?? '')), path);
      if (!target.startsWith(`${DOCS}/`))
        link.attrSet('href', `${REPOSITORY}/blob/${DOCS_VERSION || 'main'}/${relative(ROOT, target)}${hash}`);
      else if (path.endsWith('README.md')) link.attrSet('href', path.replace(/README\.md$/, 'index.md') + hash);
    }
  });
}

export default defineConfig({
  title: 'Holdfast',
  base: DOCS_VERSION === '' ? '/' : `${new URL(DOCS_SITE).pathname}${DOCS_VERSION}/`,
  srcDir: 'dist/source',
  outDir: 'dist/site',
  rewrites: { 'README.md': 'index.md', ':folder/README.md': ':folder/index.md' },
  markdown: { html: false, anchor: { slugify }, config: linkToRepository },
  themeConfig: {
    search: { provider: 'local' },
    sidebar,
    // The root has a list of all versions.
    nav: DOCS_VERSION === '' ? [] : [{ text: `${DOCS_VERSION}, other versions`, link: DOCS_SITE, target: '_self' }],
  },
});
