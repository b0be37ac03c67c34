import type { Panel } from '../../monitoring/testing/dashboard.js';

/** What Prometheus answers to the query of a panel over a range of time. */
export interface Series {
  readonly legend: string;
  /** Times in seconds, with values; a value that is no number is left out. */
  readonly points: readonly (readonly [time: number, value: number])[];
}

const UNIT = { x: 40, y: 25 };
const LEGEND_LINE = 13;
const MAX_LEGENDS = 4;
const COLOURS = ['#3274d9', '#e0752d', '#37872d', '#a352cc', '#c4162a', '#8f6b00', '#0a8080', '#5a5a5a'];

/** Draws the panels of the dashboard from data, as an SVG. It shows what the panels contain; Grafana draws them in another way. */
export function drawDashboard(panels: readonly Panel[], seriesOf: (panel: Panel) => readonly Series[]): string {
  const height = Math.max(...panels.map(({ gridPos: { y, h } }) => y + h)) * UNIT.y;
  const size = `width="${24 * UNIT.x}" height="${height}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} viewBox="0 0 ${24 * UNIT.x} ${height}" font-family="sans-serif" font-size="11">`,
    `<rect ${size} fill="#f4f5f5"/>`,
    ...panels.map((panel) => drawPanel(panel, seriesOf(panel))),
    '</svg>\n',
  ].join('\n');
}

function drawPanel({ type, title, gridPos, fieldConfig }: Panel, series: readonly Series[]): string {
  const { x, y, w, h } = gridPos;
  const unit = fieldConfig?.defaults.unit;
  const [width, height] = [w * UNIT.x - 8, h * UNIT.y - 8];
  const frame = type === 'row' ? '' : `<rect width="${width}" height="${height}" rx="3" fill="#fff" stroke="#d8d9da"/>`;
  const body = type === 'timeseries' ? drawLines(series, { width, height, unit }) : drawValues(series, unit);
  return `<g transform="translate(${x * UNIT.x + 4} ${y * UNIT.y + 4})">${frame}<text x="8" y="17" font-weight="bold" font-size="${title.length > 42 ? 9 : 11}">${escape(title)}</text>${body}</g>`;
}

/** The last value of each series. */
function drawValues(series: readonly Series[], unit: string | undefined): string {
  return series
    .map(({ legend, points }, index) => {
      const y = 42 + index * 18;
      const value = points.at(-1)?.[1] ?? 0;
      return `<text x="12" y="${y}">${escape(legend)}</text><text x="300" y="${y}" font-size="14" fill="${colour(index)}" text-anchor="end">${format(value, unit)}</text>`;
    })
    .join('');
}

function drawLines(
  series: readonly Series[],
  { width, height, unit }: { width: number; height: number; unit: string | undefined },
): string {
  const all = series.flatMap(({ points }) => points);
  if (all.length === 0) return '<text x="12" y="42" fill="#555">no data</text>';
  const [begin, end] = [Math.min(...all.map(([time]) => time)), Math.max(...all.map(([time]) => time))];
  const top = Math.max(...all.map(([, value]) => value), 0) || 1;
  const legends = Math.min(series.length, MAX_LEGENDS);
  const [left, bottom] = [52, height - 12 - legends * LEGEND_LINE];
  const x = (time: number) => left + ((width - left - 10) * (time - begin)) / Math.max(end - begin, 1);
  const y = (value: number) => bottom - ((bottom - 30) * Math.max(value, 0)) / top;
  const grid = [0, 0.5, 1].map((share) => {
    const at = y(share * top).toFixed(1);
    return `<path d="M${left} ${at}H${width - 10}" stroke="#e4e5e6"/><text x="${left - 4}" y="${at}" text-anchor="end" fill="#555" font-size="10">${format(share * top, unit)}</text>`;
  });
  const lines = series.map(({ points }, index) => {
    const path = points.map(([time, value]) => `${x(time).toFixed(0)},${y(value).toFixed(0)}`).join(' ');
    return `<polyline points="${path}" fill="none" stroke="${colour(index)}" stroke-width="1.5"/>`;
  });
  const names = series.slice(0, MAX_LEGENDS).map(({ legend }, index) => {
    const more =
      index === MAX_LEGENDS - 1 && series.length > MAX_LEGENDS ? ` and ${series.length - MAX_LEGENDS} more` : '';
    return `<text x="12" y="${bottom + 16 + index * LEGEND_LINE}" fill="${colour(index)}" font-size="10">${escape(legend + more)}</text>`;
  });
  return [...grid, ...lines, ...names].join('');
}

function colour(index: number): string {
  return COLOURS[index % COLOURS.length] ?? '#000';
}

const SECONDS: readonly (readonly [number, string])[] = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
  [1, 's'],
  [0.001, 'ms'],
];

function format(value: number, unit: string | undefined): string {
  if (unit === 'percentunit') return `${(100 * value).toFixed(0)} %`;
  if (unit === 'bytes') return `${(value / 2 ** 20).toFixed(0)} MiB`;
  if (unit === 's' && value !== 0) {
    const [size, name] = SECONDS.find(([each]) => Math.abs(value) >= each) ?? [0.001, 'ms'];
    return `${round(value / size)} ${name}`;
  }
  return `${round(value)}${unit === 'ops' ? '/s' : ''}`;
}

function round(value: number): string {
  return value >= 1e9 ? value.toExponential(1) : value.toLocaleString('en', { maximumSignificantDigits: 3 });
}

/** Labels contain names of pools, which tenants choose. */
function escape(text: string): string {
  return text.replaceAll(/[^ -~]/g, '?').replaceAll(/[&<>"']/g, (found) => `&#${found.charCodeAt(0)};`);
}
