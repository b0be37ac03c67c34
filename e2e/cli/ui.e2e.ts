import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Browser, Locator, Page } from 'playwright-core';
import { labelValue } from '../../api/ipam-claim.js';
import { LEASE_POOL } from '../../api/names.js';
import { ADDRESS_LEASES } from '../../kube/resources.js';
import { messageOf } from '../../kube/errors.js';
import { forEachParallel } from '../../kube/run-in-slices.js';
import { reportSkipped } from '../../test/report-skipped.js';
import { environment } from '../../bed/story/hooks.js';
import { EVENTS } from '../../bed/story/events.js';
import { leaseNamed } from '../../bed/story/addresses.js';
import { grantRole } from '../../bed/story/users/role.js';
import { Story } from '../../bed/story/story.js';
import { ensureBrowser, launchBrowser, UiPage, UiProcess } from '../../bed/story/kubectl/ui-browser.js';
import { SERVICE_ACCOUNTS } from '../../bed/control-plane/service-accounts.js';

const LEASES = 300;
const HOSTILE = '<img src=x onerror="alert(1)">\u202e';
/** The pictures of the documentation: `make pictures` takes them again. */
const PICTURES: Readonly<Record<string, string>> = {
  ...{ map: 'light', addresses: 'light', vm: 'light', vms: 'light', pools: 'dark' },
};
const IMAGES = join(import.meta.dirname, '..', '..', 'docs', 'images');

describe('The web page in a browser', () => {
  let browser: Browser;
  let story: Story;
  let ui: UiProcess;
  let opened: UiPage;
  let network: string;
  /** The last one first. */
  const cleanups: (() => Promise<unknown>)[] = [];
  const pool = () => `${network}.${story.namespace}`;

  before(async function () {
    const path = await ensureBrowser().catch((error: unknown) => {
      reportSkipped(`the web page is not tested: ${messageOf(error)}`);
      this.skip();
    });
    browser = await launchBrowser(path);
    cleanups.push(() => browser.close());
    story = await Story.begin(environment());
    cleanups.push(() => story.end());
    network = await story.addresses.createNetwork('blue', ['10.66.0.0/16']);
    await story.createVm('runs', { data: 'blue' });
    await story.addresses.createNetwork('single', ['10.67.0.1/32']);
    await story.createVm('stopped', { data: 'blue', control: 'single' }, { running: false });
    await story.createVm('other', { control: 'single' }, { running: false });
    const ipam = await story.addresses.unvalidatedClient();
    const create = async (n: number) => {
      const address = `10.66.${String(100 + (n >> 8))}.${String(n & 255)}`;
      await ipam.create(ADDRESS_LEASES, leaseNamed(network, address, { pool: pool() }));
    };
    cleanups.push(removeLeases);
    const numbers = Array.from({ length: LEASES }, (_, n) => n);
    await forEachParallel(numbers, 32, create);
    await story.addresses.waitForIPs('runs.data');
    ui = await UiProcess.start(environment().kubeconfig);
    cleanups.push(() => ui.stop());
    opened = await UiPage.open(browser, ui.url);
  });

  after(async () => {
    for (const cleanup of cleanups.reverse()) await cleanup();
  });

  /** Leases of the pool keep it and its namespace. */
  async function removeLeases(): Promise<void> {
    const labelSelector = `${LEASE_POOL}=${labelValue(pool())}`;
    const { items } = await story.client.list(ADDRESS_LEASES, { labelSelector });
    const reserved = items.filter(({ spec }) => spec.owner === undefined);
    await forEachParallel(reserved, 32, async ({ metadata: { name } }) => {
      await story.client.delete(ADDRESS_LEASES, { name });
    });
  }

  it('uses an address once: a second browser is told how to open the page', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    const answer = await page.goto(ui.url);
    expect(answer?.status()).to.equal(403);
    expect(await page.getByRole('main').innerText()).to.include('kubectl holdfast ui');
    await context.close();
  });

  it('has no error in the console and no axe violation in any view, in light and dark colours', async function () {
    // axe looks at each of the 256 cells of the map
    const views: readonly [name: string, route: string, text: string][] = [
      ['pools', '#/pools', pool()],
      ['map', `#/pool/${pool()}`, '10.66.0.0 – 10.66.255.255'],
      ['addresses', `#/pool/${pool()}?at=10.66.100.0&bits=8`, '10.66.100.0 – 10.66.100.255'],
      ['vms', `#/vms?q=${story.namespace}`, `${story.namespace}/stopped`],
      ['vm', `#/vm/${story.namespace}/runs`, 'AddressesAllocated'],
      ['waiting', '#/waiting', 'SubnetExhausted'],
      ['search', '#/search?q=runs', `${story.namespace}/runs`],
    ];
    for (const colorScheme of ['light', 'dark'] as const) {
      await opened.page.emulateMedia({ colorScheme });
      for (const [name, route, text] of views) {
        await opened.show(route, text);
        // only contrasts depend on the colours
        const rules = colorScheme === 'dark' ? ['color-contrast'] : undefined;
        expect(await opened.violations(rules), `${name}, ${colorScheme}`).to.deep.equal([]);
        if (process.env.UI_PICTURES !== undefined && PICTURES[name] === colorScheme)
          await opened.page.screenshot({ path: join(IMAGES, `ui-${name}.png`) });
      }
    }
    const taken = (await readdir(IMAGES)).filter((name) => name.startsWith('ui-'));
    expect(taken, 'pictures of the documentation').to.have.members(
      Object.keys(PICTURES).map((name) => `ui-${name}.png`),
    );
    await opened.page.emulateMedia({ colorScheme: 'light' });
    expect(opened.problems).to.deep.equal([]);
  });

  it('is operated by keyboard: the map zooms, and its cells say what they are', async () => {
    const { page } = opened;
    await opened.show(`#/pool/${pool()}`, '10.66.0.0 – 10.66.255.255');
    await page.getByRole('gridcell', { name: '10.66.0.0 to 10.66.0.255' }).focus();
    for (let row = 0; row < 6; row += 1) await page.keyboard.press('ArrowDown');
    for (let column = 0; column < 4; column += 1) await page.keyboard.press('ArrowRight');
    await focused(page, page.getByRole('gridcell', { name: '10.66.100.0 to 10.66.100.255, 256 reserved' }));
    await page.keyboard.press('Enter');
    await page.getByRole('gridcell', { name: '10.66.100.7, reserved' }).waitFor();
    await page.keyboard.press('End');
    await focused(page, page.getByRole('gridcell', { name: '10.66.100.15, reserved' }));
    await page.keyboard.press('Escape');
    await page.getByText('10.66.0.0 – 10.66.255.255').waitFor();
    expect(await page.getByRole('gridcell').count()).to.equal(256);
  });

  it('is operated by keyboard: search, tables and links', async () => {
    const { page } = opened;
    await opened.show('#/pools', pool());
    await page.getByRole('search').getByRole('searchbox').focus();
    await page.keyboard.type(`${story.namespace}/sto`);
    // rows of a shorter text go, and a link in them with the focus too
    await page.getByText('Found: 1', { exact: true }).waitFor();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await focused(page, page.getByRole('link', { name: `${story.namespace}/stopped` }));
    await page.keyboard.press('Enter');
    await focused(page, page.getByRole('heading', { level: 1, name: `VM ${story.namespace}/stopped` }));
    expect(await page.title()).to.include(`VM ${story.namespace}/stopped`);
  });

  it('shows a VM with its address as soon as it is created, without a reload', async () => {
    await opened.show(`#/vms?q=${story.namespace}`, `${story.namespace}/runs`);
    const loads = await opened.page.evaluate('performance.timeOrigin');
    await story.createVm('late', { data: 'blue' });
    const [address = ''] = await story.addresses.waitForIPs('late.data');
    const row = opened.page
      .getByRole('row')
      .filter({ hasText: `${story.namespace}/late` })
      .first();
    await row.getByText(address).waitFor();
    await row.getByText('Running').waitFor();
    expect(await opened.page.evaluate('performance.timeOrigin')).to.equal(loads);
  });

  it('shows markup in a message of a tenant as text', async () => {
    const involvedObject = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      namespace: story.namespace,
      name: 'runs',
    };
    const event = {
      metadata: story.ref('hostile'),
      involvedObject,
      reason: 'Hostile',
      message: HOSTILE,
      type: 'Normal',
    };
    await story.client.create(EVENTS, { ...event, lastTimestamp: new Date().toISOString() } as never);
    await opened.show(`#/vm/${story.namespace}/runs`, '<img src=x onerror="alert(1)">\\u202e');
    expect(await opened.page.locator('img').count()).to.equal(0);
    expect(opened.problems).to.deep.equal([]);
  });

  it('shows users with few rights what they may read, and names the rest', async function () {
    const { bed } = environment();
    if (bed === undefined) this.skip();
    const account = { namespace: story.namespace, name: 'reader' };
    await story.client.create(SERVICE_ACCOUNTS, { metadata: account });
    const verbs = ['get', 'list', 'watch'];
    await grantRole(story.client, account, [
      { apiGroups: ['kubevirt.io'], resources: ['virtualmachines', 'virtualmachineinstances'], verbs },
      { apiGroups: ['k8s.cni.cncf.io'], resources: ['ipamclaims'], verbs },
    ]);
    const kubeconfig = await bed.serviceAccountKubeconfig(account.namespace, account.name);
    const own = await UiProcess.start(kubeconfig, ['-n', story.namespace]);
    try {
      const limited = await UiPage.open(browser, own.url);
      await limited.show('#/vms', `${story.namespace}/runs`);
      const missing = limited.page.getByRole('region', { name: 'What is not shown' });
      await missing.getByText('You may not read all of the cluster').click();
      await missing.getByText('may not list addressleases.ipam.holdfast.dev').waitFor();
      await missing.getByText(`only in namespace ${story.namespace}`).first().waitFor();
      expect(await limited.violations()).to.deep.equal([]);
      expect(limited.problems).to.deep.equal([]);
      await limited.close();
    } finally {
      await own.stop();
    }
  });

  it('says that the server has ended', async () => {
    const other = await UiProcess.start(environment().kubeconfig);
    const page = await UiPage.open(browser, other.url);
    expect(await other.stop()).to.equal(0);
    await page.page.getByText('Connection lost').waitFor();
    await page.close();
  });
});

/** Waits until an element has the focus. */
function focused(page: Page, element: Locator): Promise<void> {
  return element.and(page.locator(':focus')).waitFor();
}
