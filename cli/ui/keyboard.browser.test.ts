import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { UiPage } from '../../bed/story/kubectl/ui-browser.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { NAMESPACE, claim, vm } from '../../test/objects/workload-objects.js';
import { useBrowser } from './testing/use-browser.js';
import { ADDRESS_POOLS, IPAM_CLAIMS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { WatchedCluster } from './testing/watched-cluster.js';

/** Tests send events to the stream of the page. */
const KEEP_STREAM = `EventSource = class extends EventSource { constructor(url) { super(url); globalThis.stream = this; } };`;
/** The page draws itself again, as if something had changed at this moment. */
const UPDATE = `stream.dispatchEvent(new MessageEvent('patch', { data: '[]' }))`;
/** Effects run after the next frame. */
const AFTER_EFFECTS = '((run) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(run))))';
const FOCUSED = 'document.activeElement.textContent';

describe('The keyboard on the web page, while the cluster changes', function () {
  this.timeout(30_000);
  const openPage = useBrowser('the keyboard on the web page');
  let cluster: WatchedCluster;
  let opened: UiPage;
  let page: Page;

  beforeEach(async () => {
    cluster = new WatchedCluster();
    cluster.tracker.put(ADDRESS_POOLS, adminPool('blue'), adminPool('large', { cidr: '10.66.0.0/16' }));
    for (const name of ['vm1', 'vm2', 'vm3'])
      cluster.tracker.put(VIRTUAL_MACHINES, vm({ data: 'blue' }, { name, uid: name }));
    opened = await openPage(cluster, { timeoutMs: 5_000, script: KEEP_STREAM });
    page = opened.page;
  });

  for (const { field, route } of [
    { field: 'Filter', route: '#/vms' },
    { field: 'Search', route: '#/pools' },
    { field: 'Search', route: '#/search' },
  ]) {
    it(`does not lose a letter in the field ${field} of ${route} when an update arrives between two of them`, async () => {
      await page.evaluate(`location.hash = '${route}'`);
      const box = page.getByRole('searchbox', { name: field });
      await box.focus();
      const typed = await page.evaluate(`(async () => {
        const box = document.activeElement;
        for (const letter of 'abc') {
          box.setRangeText(letter, box.selectionStart, box.selectionEnd, 'end');
          box.dispatchEvent(new InputEvent('input', { bubbles: true }));
          // the browser has not yet told the page that its address changed
          ${UPDATE};
          await Promise.resolve();
        }
        return box.value;
      })()`);
      expect(typed).to.equal('abc');
    });
  }

  it('leads from the search to a VM by the keyboard alone, with an update every few milliseconds', async () => {
    await page.evaluate(`setInterval(() => { ${UPDATE}; }, 5)`);
    await page.getByRole('searchbox', { name: 'Search' }).focus();
    await page.keyboard.type(`${NAMESPACE}/vm2`);
    await page.getByText('Found: 1', { exact: true }).waitFor();
    for (const key of ['Tab', 'Tab', 'Enter']) await page.keyboard.press(key);
    await page.waitForFunction(`${FOCUSED} === 'VM ${NAMESPACE}/vm2'`);
  });

  it('keeps the place where a user types in the middle of a text', async () => {
    await page.evaluate(`location.hash = '#/vms?q=1'`);
    const box = page.getByRole('searchbox', { name: 'Filter' });
    await page.getByRole('row').nth(1).waitFor();
    await box.focus();
    await page.keyboard.press('Home');
    await page.keyboard.type('vm', { delay: 20 });
    await page.waitForFunction(`location.hash === '#/vms?q=vm1'`);
    expect(await box.inputValue()).to.equal('vm1');
  });

  it('empties the search field on other views, and fills it when the user goes back', async () => {
    const box = page.getByRole('searchbox', { name: 'Search' });
    await box.fill('vm2');
    await page.getByRole('link', { name: `${NAMESPACE}/vm2` }).press('Enter');
    await page.getByRole('heading', { level: 1, name: `VM ${NAMESPACE}/vm2` }).waitFor();
    expect(await box.inputValue()).to.equal('');
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Search' }).waitFor();
    expect(await box.inputValue()).to.equal('vm2');
    await page.goBack();
    await page.getByRole('heading', { level: 1, name: 'Pools' }).waitFor();
  });

  it('keeps the focus on a link of which the details change', async () => {
    await page.getByRole('searchbox', { name: 'Search' }).fill('vm2');
    const link = page.getByRole('link', { name: `${NAMESPACE}/vm2` });
    await link.focus();
    cluster.tracker.put(IPAM_CLAIMS, claimOf('vm2', '10.0.0.5/24'));
    await page.getByRole('cell', { name: '10.0.0.5' }).waitFor();
    expect(await page.evaluate(FOCUSED)).to.equal(`${NAMESPACE}/vm2`);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: `VM ${NAMESPACE}/vm2` }).waitFor();
  });

  it('keeps the focus on a row when others are added before and after it', async () => {
    await page.evaluate(`location.hash = '#/vms'`);
    await page.getByRole('link', { name: `${NAMESPACE}/vm2` }).focus();
    const added = ['aaa', 'vm11', 'zzz'].map((name) => vm({ data: 'blue' }, { name, uid: name }));
    cluster.tracker.put(VIRTUAL_MACHINES, ...added);
    await page.getByRole('link', { name: `${NAMESPACE}/zzz` }).waitFor();
    expect(await page.evaluate(FOCUSED)).to.equal(`${NAMESPACE}/vm2`);
  });

  it('never shows one VM under the name of another', async () => {
    cluster.tracker.put(IPAM_CLAIMS, claimOf('vm1', '10.0.0.5/24'));
    await opened.show(`#/vm/${NAMESPACE}/vm1`, '10.0.0.5');
    await page.route(/views\?.*name=vm2/, () => undefined);
    await page.evaluate(`location.hash = '#/vm/${NAMESPACE}/vm2'`);
    await page.getByRole('heading', { level: 1, name: `VM ${NAMESPACE}/vm2` }).waitFor();
    expect(await page.getByRole('main').innerText()).not.to.include('10.0.0.5');
  });

  it('leaves the focus where a user moves it right after the page has changed', async () => {
    const focused = page.evaluate(`new Promise((resolve) => {
      const onShown = () => {
        setTimeout(() => document.querySelector('nav a').focus());
        ${AFTER_EFFECTS}(() => resolve(${FOCUSED}));
      };
      new MutationObserver(onShown).observe(document.querySelector('h1'), { subtree: true, characterData: true });
    })`);
    await page.evaluate(`location.hash = '#/vms'`);
    expect(await focused).to.equal('Pools');
  });

  it('moves on the map from the first moment that a new part of it is shown', async () => {
    await opened.show('#/pool/large', '10.66.0.0 – 10.66.255.255');
    await page.getByRole('gridcell', { name: '10.66.0.0 to' }).focus();
    const focused = page.evaluate(`new Promise((resolve) => {
      const press = () => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: 'End', bubbles: true }));
      const report = () => resolve(document.activeElement.getAttribute('aria-label'));
      const onShown = () => {
        setTimeout(press);
        ${AFTER_EFFECTS}(report);
      };
      new MutationObserver(onShown).observe(document.querySelector('[role=grid]'), { attributeFilter: ['aria-label'] });
    })`);
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    expect(await focused).to.match(/^10\.66\.1\.15,/);
  });
});

function claimOf(name: string, address: string) {
  const { metadata, ...rest } = claim({ ips: [address] });
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name, uid: name, controller: true };
  return { ...rest, metadata: { ...metadata, name: `${name}.data`, ownerReferences: [owner] } };
}
