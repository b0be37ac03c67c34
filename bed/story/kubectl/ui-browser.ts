import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { AxeResults } from 'axe-core';
import { type Browser, type Page, chromium } from 'playwright-core';
import { capture } from '../../processes/processes.js';
import { messageOf } from '../../../kube/errors.js';
import { PLUGIN } from './kubectl-plugin.js';

/** Debian's, and those of other systems. */
const BROWSERS = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/**
 * The path of a browser: that which `CHROMIUM` names, an installed one, or Debian's, which root installs.
 * @throws {Error} that says what to install
 */
export async function ensureBrowser(): Promise<string> {
  const found = installedBrowser();
  if (found !== undefined) return found;
  const remedy = 'install chromium, or set CHROMIUM to the path of a browser';
  if (process.getuid?.() !== 0) throw new Error(remedy);
  console.log('    installing the package chromium, which happens only once');
  try {
    await install();
  } catch (error) {
    throw new Error(`${remedy}; apt-get did not install it: ${messageOf(error)}`, { cause: error });
  }
  const installed = installedBrowser();
  if (installed === undefined) throw new Error(`${remedy}; the package chromium has none of ${BROWSERS.join(', ')}`);
  return installed;
}

function installedBrowser(): string | undefined {
  return [...(process.env.CHROMIUM === undefined ? [] : [process.env.CHROMIUM]), ...BROWSERS].find(existsSync);
}

async function install(): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  // suites in other processes install it, too, and apt-get does not wait for its own locks
  const apt = (...args: string[]) => capture('flock', ['/var/lib/apt', 'apt-get', '--quiet', ...args], { env });
  const get = () => apt('install', '--yes', '--no-install-recommends', 'chromium');
  // a container image has no package lists, or old ones
  await get().catch(() => apt('update').then(get));
}

export async function launchBrowser(executablePath: string): Promise<Browser> {
  // chromium's sandbox does not work for root
  return chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ['--no-sandbox'] : [] });
}

/** `kubectl holdfast ui`, as built by build.js. */
export class UiProcess {
  /** The address that can be used once. */
  readonly url: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
  }

  static async start(kubeconfig: string, args: readonly string[] = []): Promise<UiProcess> {
    const child = spawn(PLUGIN, ['ui', '--no-browser', '--kubeconfig', kubeconfig, ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    for await (const line of createInterface({ input: child.stdout })) {
      const [url] = /http:\/\/\S+/.exec(line) ?? [];
      if (url !== undefined) return new UiProcess(child, url);
    }
    throw new Error('kubectl holdfast ui has ended before it printed an address');
  }

  /** Ctrl-C. @returns the exit code */
  async stop(): Promise<number | null> {
    if (this.#child.exitCode !== null) return this.#child.exitCode;
    const exit = new Promise<number | null>((resolve) => this.#child.once('exit', resolve));
    this.#child.kill('SIGINT');
    return exit;
  }
}

/** The page in a browser, with everything that went wrong in it. */
export class UiPage {
  readonly page: Page;
  /** Messages of the console, errors of scripts, dialogs, and answers that are errors. */
  readonly problems: string[] = [];

  private constructor(page: Page) {
    this.page = page;
    page.on('console', (message) => {
      if (message.type() !== 'debug') this.problems.push(`console: ${message.text()}`);
    });
    page.on('pageerror', (error) => this.problems.push(`script: ${error.message}`));
    page.on('dialog', (dialog) => {
      this.problems.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('response', (response) => {
      if (response.status() >= 400) this.problems.push(`answer: ${response.status()} ${response.url()}`);
    });
    page.on('request', (request) => {
      const { hostname, protocol } = new URL(request.url());
      if (protocol !== 'data:' && hostname !== '127.0.0.1') this.problems.push(`request: ${request.url()}`);
    });
  }

  static async open(browser: Browser, url: string, initScript = ''): Promise<UiPage> {
    const context = await browser.newContext({ viewport: { width: 1100, height: 760 } });
    // as long as other waits of stories
    context.setDefaultTimeout(60_000);
    // before the scripts of the page
    await context.addInitScript(initScript);
    const opened = new UiPage(await context.newPage());
    await opened.page.goto(url, { waitUntil: 'commit' });
    await opened.page.getByText('Live', { exact: true }).waitFor();
    return opened;
  }

  /** Shows a view, and waits for a text in its content. */
  async show(route: string, text: string): Promise<void> {
    await this.page.evaluate(`location.hash = ${JSON.stringify(route)}`);
    await this.page.getByRole('main').getByText(text).first().waitFor();
  }

  /** @returns the rules that the view violates, by default of all rules of axe: WCAG and good practice */
  async violations(rules?: readonly string[]): Promise<string[]> {
    const options = rules === undefined ? {} : { runOnly: rules };
    const path = createRequire(import.meta.url).resolve('axe-core/axe.min.js');
    // the page's content security policy forbids scripts of others, but not those of the browser's debugger
    const found = await this.page.evaluate(
      `${await readFile(path, 'utf8')}; axe.run(document, ${JSON.stringify(options)})`,
    );
    return (found as AxeResults).violations.map(
      ({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 200)).join(' | ')}`,
    );
  }

  async close(): Promise<void> {
    await this.page.context().close();
  }
}
