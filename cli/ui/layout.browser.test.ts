import { expect } from 'chai';
import type { Page } from 'playwright-core';
import type { UiPage } from '../../bed/story/kubectl/ui-browser.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { KubeObject } from '../../api/meta.js';
import { IPS_ALLOCATED } from '../../api/names.js';
import { LEASES } from '../../kube/leader-election.js';
import { ADDRESS_POOLS, IPAM_CLAIMS, NETWORK_ATTACHMENT_DEFINITIONS, VIRTUAL_MACHINES } from '../../kube/resources.js';
import { adminPool, holdfastConfig, nadDefinition } from '../../test/objects/pool-objects.js';
import { NAMESPACE, type WorkloadClaimOptions, claim, vm, vmReference } from '../../test/objects/workload-objects.js';
import { DEPLOYMENTS, INSTALLED } from '../installation.js';
import { workloadOf } from '../testing/healthy-cluster.js';
import { useBrowser } from './testing/use-browser.js';
import { WatchedCluster } from './testing/watched-cluster.js';

const FULL = { capacity: 254, leased: 200, cooling: 4, free: 0, reserved: 50, quarantined: 0 };
const WHY = `Pool blue is full for IPv4: 254 of 254 leased, 3 of them by stopped VMs. ${'Add a range, or delete VMs that are no longer needed. '.repeat(4)}`;

describe('The web page when something is wrong', function () {
  this.timeout(30_000);
  const openPage = useBrowser('the layout of the web page');
  let cluster: WatchedCluster;
  let opened: UiPage;
  let page: Page;

  beforeEach(async () => {
    cluster = new WatchedCluster();
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Serving', message: '', lastTransitionTime: '' }];
    const empty = { ...FULL, leased: 0, reserved: 0, cooling: 0, free: 254 };
    cluster.tracker.put(
      ADDRESS_POOLS,
      { ...adminPool('blue'), status: { conditions, ipv4: FULL } } as KubeObject,
      { ...adminPool('green', { cidr: '10.1.0.0/24' }), status: { conditions, ipv4: empty } } as KubeObject,
    );
    for (const name of ['vm1', 'vm2', 'vm10'])
      cluster.tracker.put(VIRTUAL_MACHINES, vm({ data: 'blue' }, { name, uid: name }));
    cluster.tracker.put(
      NETWORK_ATTACHMENT_DEFINITIONS,
      nadDefinition(`${NAMESPACE}/blue`, { ...holdfastConfig(), allowPersistentIPs: true }),
    );
    for (const name of ['vm1', 'vm10']) cluster.tracker.put(IPAM_CLAIMS, claimOfVm(name, { ips: ['10.0.0.5/24'] }));
    cluster.tracker.put(IPAM_CLAIMS, waitingClaim());
    await open();
  });

  async function open(): Promise<void> {
    opened = await openPage(cluster, { timeoutMs: 10_000 });
    page = opened.page;
  }

  for (const width of [1440, 1100, 820, 390])
    for (const [route, text] of [
      ['#/vms', 'SubnetExhausted'],
      ['#/waiting', 'SubnetExhausted'],
      ['#/pools', 'full'],
    ] as const)
      it(`shows the whole problem in ${route} at ${width} px, without scrolling sideways`, async () => {
        await page.setViewportSize({ width, height: 900 });
        await opened.show(route, text);
        const widths = await page.evaluate(`[document.documentElement, ...document.querySelectorAll('.table')]
          .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.className + each.scrollWidth)`);
        expect(widths).to.deep.equal([]);
        if (route === '#/vms') expect(await page.getByRole('main').innerText()).to.include(WHY.trim());
        expect(await opened.violations()).to.deep.equal([]);
      });

  it('is a list of cards below 700 px, and still a table for screen readers', async () => {
    await page.setViewportSize({ width: 390, height: 900 });
    await opened.show('#/vms', 'SubnetExhausted');
    const card = page.locator('tr.noted');
    const lefts = await Promise.all(
      (await card.getByRole('cell').all()).map(async (cell) => (await cell.boundingBox())?.x),
    );
    const shown = lefts.filter((left) => left !== undefined);
    expect(new Set(shown).size, 'cells below one another').to.equal(1);
    const ofCard = await card.boundingBox();
    expect(ofCard?.width).to.be.greaterThan(300);
    expect(await page.getByRole('columnheader', { name: 'VM' }).getByRole('button').isVisible()).to.equal(true);
  });

  it('sorts by a column, first in the order that shows what is wrong, and keeps the order in the address', async () => {
    await opened.show('#/vms', 'SubnetExhausted');
    const order = () => page.getByRole('rowheader').allInnerTexts();
    expect(await order()).to.deep.equal(['vm1', 'vm10', 'vm2'].map((name) => `${NAMESPACE}/${name}`));
    await page.getByRole('button', { name: 'Problem' }).press('Enter');
    await page.getByRole('columnheader', { name: 'Problem' }).and(page.locator('[aria-sort=descending]')).waitFor();
    await page.locator('tbody tr:nth-child(1) th', { hasText: '/vm2' }).waitFor();
    await page.reload();
    await page.locator('tbody tr:nth-child(1) th', { hasText: '/vm2' }).waitFor();
    await page.getByRole('button', { name: 'VM', exact: false }).first().click();
    await page.locator('tbody tr:last-child th', { hasText: '/vm10' }).waitFor();
  });

  it('shows a full pool as a full bar, with the word', async () => {
    await opened.show('#/pools', 'full');
    const bars = await page.evaluate(`[...document.querySelectorAll('.bar')].map((bar) => {
      const parts = [...bar.children].map((part) => part.getBoundingClientRect().width);
      return Math.round((100 * parts.reduce((sum, width) => sum + width, 0)) / bar.clientWidth);
    })`);
    expect(bars).to.deep.equal([100, 0]);
    expect(await page.getByText('full', { exact: true }).count()).to.equal(1);
  });

  it('begins at the VMs for users who may not read pools, with one line about what they may not read', async () => {
    for (const kind of ['addresspools', 'addressleases']) cluster.forbidden.set(kind, ['*']);
    await open();
    await page.getByRole('heading', { level: 1, name: 'VMs' }).waitFor();
    const missing = page.getByRole('region', { name: 'What is not shown' });
    await missing.getByText('2 of 5 kinds of objects').waitFor();
    expect(await missing.getByText('may not list').first().isVisible()).to.equal(false);
    expect((await missing.boundingBox())?.height).to.be.lessThan(50);
    await missing.locator('summary').click();
    await missing.getByText('may not list addresspools.ipam.holdfast.dev').waitFor();
    expect(await opened.violations()).to.deep.equal([]);
  });

  it('has a banner on each view while ipam has no leader', async () => {
    const [key = '', value = ''] = INSTALLED.split('=');
    const metadata = { namespace: 'holdfast-system', name: 'holdfast-ipam', labels: { [key]: value } };
    cluster.tracker.put(LEASES, { metadata, spec: { holderIdentity: '' } } as KubeObject);
    cluster.tracker.put(DEPLOYMENTS, workloadOf('ipam'));
    await page.reload();
    await page.getByRole('alert').getByText('Lease holdfast-system/holdfast-ipam: has no leader').waitFor();
    await page.evaluate(`location.hash = '#/pool/blue'`);
    await page.getByRole('alert').getByText('has no leader').waitFor();
    expect(await opened.violations(['color-contrast'])).to.deep.equal([]);
  });

  it('has a banner while the API server is away, which says how old the view is, until it is back', async function () {
    this.timeout(60_000);
    cluster.goAway();
    await page.getByRole('alert').getByText('Nothing could be read from the API server since').waitFor();
    await page.getByRole('alert').getByText('ECONNREFUSED').waitFor({ timeout: 25_000 });
    await page.getByRole('link', { name: 'blue' }).waitFor();
    cluster.comeBack();
    await page.getByRole('alert').waitFor({ state: 'detached', timeout: 25_000 });
  });

  it('says that it is old when the server is silent, although the connection is open', async () => {
    await page.clock.install();
    await page.reload();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.clock.fastForward('01:00');
    await page.getByRole('alert').getByText('kubectl holdfast ui does not answer this page').waitFor();
  });
});

function claimOfVm(name: string, options: WorkloadClaimOptions = {}): IPAMClaim {
  return claim({ name: `${name}.data`, label: name, network: 'blue', owner: vmReference(name, name), ...options });
}

function waitingClaim(): KubeObject {
  const conditions = [{ type: IPS_ALLOCATED, status: 'False', reason: 'SubnetExhausted', message: WHY.trim() }];
  return { ...claimOfVm('vm2'), status: { ips: [], conditions } } as KubeObject;
}
