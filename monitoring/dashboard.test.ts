import { expect } from 'chai';
import { createAllMetrics } from '../test/repository/reference.js';
import { type Dashboard, queriesOf, queryOf, readDashboard } from './testing/dashboard.js';
import { PROMCHECK_TIMEOUT_MS, promcheck } from './testing/promcheck.js';

describe('the dashboard', () => {
  let dashboard: Dashboard;

  before(async () => {
    dashboard = await readDashboard();
  });

  it('has rows for the overview, pools, nodes and guests, with panels that do not overlap', () => {
    const { panels } = dashboard;
    expect(panels.filter(({ type }) => type === 'row').map(({ title }) => title)).to.deep.equal([
      ...['Overview', 'Pool', 'Node', 'Guest'],
    ]);
    expect(new Set(panels.map(({ id }) => id)).size).to.equal(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).to.equal(cells.length);
  });

  it('has queries that Prometheus can read, of metrics that exist', async function () {
    this.timeout(PROMCHECK_TIMEOUT_MS);
    const { registry } = createAllMetrics();
    const known = new Set(registry.getMetricsAsArray().map(({ name }) => name));
    const queries = queriesOf(dashboard);
    expect(queries.length).to.be.greaterThan(25);
    const { metrics } = await promcheck({ expressions: queries.map(({ query }) => query) });
    const used = metrics.flat().map((name) => name.replace(/_(bucket|sum|count)$/, ''));
    expect(used.filter((name) => !known.has(name))).to.deep.equal([]);
  });

  it('asks for all series if everything is chosen, also for those of pools that publish no metrics', () => {
    for (const { type, allValue } of dashboard.templating.list)
      if (type === 'query') expect(allValue).to.equal(queryOf('$pool'));
  });

  it('uses the variables that it defines, and defines no others', () => {
    const defined = dashboard.templating.list.map(({ name }) => name);
    const used = new Set([...JSON.stringify(dashboard).matchAll(/\$\{?(?!__)(\w+)/g)].map(([, name]) => name));
    expect([...used].sort()).to.deep.equal([...defined].sort());
  });
});
