import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { UiPage, ensureBrowser, launchBrowser } from '../../../bed/story/kubectl/ui-browser.js';
import { messageOf } from '../../../kube/errors.js';
import { reportSkipped } from '../../../test/report-skipped.js';
import type { PageFiles } from '../html.js';
import { startUi } from './ui-client.js';
import type { WatchedCluster } from './watched-cluster.js';

interface PageOptions {
  readonly timeoutMs: number;
  /** Runs in the page before its own script. */
  readonly script?: string;
}

/**
 * Starts a browser for a suite, and bundles the page. Without a browser, the suite is skipped.
 * @param what is not tested then
 * @returns a function that opens the page of a cluster in place of an earlier one; it is closed after the test
 */
export function useBrowser(what: string): (cluster: WatchedCluster, options: PageOptions) => Promise<UiPage> {
  let browser: Browser | undefined;
  let files: PageFiles | undefined;
  let close: (() => Promise<void>) | undefined;
  before(async function () {
    this.timeout(300_000);
    const path = await ensureBrowser().catch((error: unknown) => {
      reportSkipped(`${what} is not tested: ${messageOf(error)}`);
      this.skip();
    });
    files = await bundlePage();
    browser = await launchBrowser(path);
  });
  afterEach(() => close?.());
  after(() => browser?.close());
  return async (cluster, { timeoutMs, script }) => {
    await close?.();
    const ui = await startUi(cluster, { page: files! });
    const opened = await UiPage.open(browser!, ui.server.entranceUrl(), script);
    opened.page.setDefaultTimeout(timeoutMs);
    close = async () => {
      close = undefined;
      await opened.close();
      await ui.stop();
    };
    return opened;
  };
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
