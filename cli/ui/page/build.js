import { join } from 'node:path';
import { build } from 'esbuild';

/** Bundles the page with more options of esbuild. @returns its files in memory, named page.js… below `page/` */
export function buildPage(options) {
  const here = import.meta.dirname;
  return build({
    ...options,
    bundle: true,
    entryPoints: [join(here, 'main.tsx'), join(here, 'page.css')],
    platform: 'browser',
    target: 'es2023',
    tsconfig: join(here, 'tsconfig.json'),
    outdir: 'page',
    write: false,
  });
}

/** @param page the result of {@link buildPage} @param ending `.js` or `.css` */
export function textOf(page, ending) {
  return page.outputFiles.find(({ path }) => path.endsWith(ending)).text;
}
