import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { ensureBrowser, launchBrowser } from '../../../bed/story/ui-browser.js';
import { messageOf } from '../../../kube/errors.js';
import { reportSkipped } from '../../../test/report-skipped.js';
import type { PageFiles } from '../html.js';

/** Starts a browser for a suite, and bundles the page. Without a browser, the suite is skipped. @param what is not tested then */
export function useBrowser(what: string): { readonly browser: () => Browser; readonly files: () => PageFiles } {
  let browser: Browser | undefined;
  let files: PageFiles | undefined;
  before(async function () {
    this.timeout(300_000);
    const path = await ensureBrowser().catch((error: unknown) => {
      reportSkipped(`${what} is not tested: ${messageOf(error)}`);
      this.skip();
    });
    files = await bundlePage();
    browser = await launchBrowser(path);
  });
  after(() => browser?.close());
  return { browser: () => browser!, files: () => files! };
}

async function bundlePage(): Promise<PageFiles> {
  const url = pathToFileURL(join(import.meta.dirname, '..', 'page', 'build.js')).href;
  const { buildPage, textOf } = (await import(url)) as {
    buildPage: (options: object) => Promise<object>;
    textOf: (page: object, ending: string) => string;
  };
  const page = await buildPage({});
  return { script: textOf(page, '.js'), style: textOf(page, '.css') };
}
