import { labelValue } from '../api/ipam-claim.js';
import { LEASE_POOL } from '../api/names.js';
import { leaseNamed } from '../bed/story/addresses.js';
import type { Story } from '../bed/story/story.js';
import { ensureBrowser, launchBrowser, UiPage, UiProcess } from '../bed/story/kubectl/ui-browser.js';
import type { BedWithHoldfast } from '../bed/environment.js';
import { resourcePath } from '../kube/resource.js';
import { ADDRESS_LEASES } from '../kube/resources.js';
import { runLoad } from './load.js';
import type { Figure } from './report.js';

const LEASES = 20_000;
const RUNS = 5;
/** One request deletes all leases. */
const DELETION_MS = 120_000;

/** Measures the web page in a browser on a pool with 20,000 leases. */
export async function benchUi(bed: BedWithHoldfast, story: Story): Promise<Figure[]> {
  const path = await ensureBrowser();
  const network = await story.addresses.createNetwork('blue', ['10.66.0.0/16']);
  const pool = (await story.addresses.waitForDerivedPool(network)).metadata.name;
  const ipam = await story.addresses.unvalidatedClient();
  const create = async (n: number) => {
    // every second address, so that no two neighbours have the same state
    const value = 2 * n + 2;
    const address = `10.66.${String(value >> 8)}.${String(value & 255)}`;
    await ipam.create(ADDRESS_LEASES, leaseNamed(network, address, { pool }));
  };
  await runLoad(create, { count: LEASES, concurrency: 64 });
  const browser = await launchBrowser(path);
  const ui = await UiProcess.start(bed.kubeconfig);
  const times: { paint: number; pools: number; map: number; zoom: number }[] = [];
  const problems: string[] = [];
  try {
    const opened = await UiPage.open(browser, ui.url);
    await opened.show(`#/pool/${pool}`, '10.66.0.0 – 10.66.255.255');
    for (let run = 0; run < RUNS; run += 1) {
      await opened.show('#/pools', pool);
      await opened.page.reload({ waitUntil: 'commit' });
      await opened.page.getByRole('main').getByText(pool).waitFor();
      const pools = await opened.page.evaluate<number>('performance.now()');
      const paint = await opened.page.evaluate<number>(
        'performance.getEntriesByName("first-contentful-paint")[0].startTime',
      );
      const map = await timed(() => opened.show(`#/pool/${pool}`, '10.66.0.0 – 10.66.255.255'));
      const zoom = await timed(() => opened.show(`#/pool/${pool}?at=10.66.3.0&bits=8`, '10.66.3.0 – 10.66.3.255'));
      times.push({ paint, pools, map, zoom });
    }
    // as in e2e/cli/ui.e2e.ts, here with many leases, and after what is measured
    problems.push(...(await opened.violations()), ...opened.problems);
    for (const problem of problems) console.error(problem);
  } finally {
    await browser.close();
    await ui.stop();
    // otherwise the pool could not be deleted, and other benches would have more leases
    const query = { labelSelector: `${LEASE_POOL}=${labelValue(pool)}` };
    const path = resourcePath(ADDRESS_LEASES);
    await bed.client.transport.request({ method: 'DELETE', path, query, deadlineMs: DELETION_MS });
  }
  const median = (key: keyof (typeof times)[number]) =>
    times.map((each) => each[key]).sort((a, b) => a - b)[Math.floor(RUNS / 2)]!;
  const name = `ui: ${String(LEASES)} leases`;
  return [
    { name: `${name}, first paint`, value: median('paint'), unit: 'ms', target: { atMost: 1_000 } },
    { name: `${name}, pools shown`, value: median('pools'), unit: 'ms' },
    { name: `${name}, map of a /16 shown`, value: median('map'), unit: 'ms' },
    { name: `${name}, zoomed to 256 addresses`, value: median('zoom'), unit: 'ms' },
    { name: `${name}, problems in the console or of axe`, value: problems.length, unit: '', target: { atMost: 0 } },
  ];
}

async function timed(run: () => Promise<void>): Promise<number> {
  const began = performance.now();
  await run();
  return performance.now() - began;
}
