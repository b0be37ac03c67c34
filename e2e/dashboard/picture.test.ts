import { expect } from 'chai';
import { readDashboard } from '../../monitoring/testing/dashboard.js';
import { drawDashboard } from './picture.js';

describe('The drawing of the dashboard', () => {
  it('shows each panel with its title, and each series of a panel with its legend', async () => {
    const { panels } = await readDashboard();
    const series = ['one', '<two>'].map((legend, index) => ({
      legend,
      points: [
        [0, index],
        [60, 2],
      ] as const,
    }));
    const svg = drawDashboard(panels, ({ type }) => (type === 'row' ? [] : series));
    const shown = panels.filter(({ type }) => type !== 'row');
    expect(svg.match(/<text[^>]* font-weight="bold"/g)).to.have.length(panels.length);
    expect(svg.match(/<polyline /g)).to.have.length(2 * panels.filter(({ type }) => type === 'timeseries').length);
    expect(svg.match(/>&#60;two&#62;</g)).to.have.length(shown.length);
    expect(svg).not.to.match(/NaN|Infinity|undefined/);
  });

  it('is drawn without data, too', async () => {
    const { panels } = await readDashboard();
    expect(drawDashboard(panels, () => [])).not.to.match(/NaN|Infinity|undefined/);
  });
});
