import { formatCount } from '../../../addressing/address-states.js';
import type { VNode } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { ConditionRow, PoolRow, ShownPoolCounts } from '../protocol.js';
import { poolHref } from '../route.js';
import { type Column, Table, type TableProps } from './table.jsx';

export function Problems({ problems }: { problems: readonly ConditionRow[] }): VNode | null {
  if (problems.length === 0) return null;
  return (
    <ul class="problems">
      {problems.map(({ type, reason, message }) => (
        <li key={type}>
          <strong>{reason}</strong>: {message}
        </li>
      ))}
    </ul>
  );
}

/** The use of a pool over time, as a line. */
export function UseLine({ used, times }: { used: PoolRow['used']; times: readonly number[] }): VNode {
  const known = used.filter((value) => value !== null);
  const [first, last] = [known[0], known.at(-1)];
  if (first === undefined || last === undefined) return <span class="quiet">not known yet</span>;
  const [begin = 0, end = 0] = [times[times.length - used.length], times.at(-1)];
  const x = (index: number) => ((times[times.length - used.length + index] ?? end) - begin) / Math.max(end - begin, 1);
  const points = used.flatMap((value, index) =>
    value === null ? [] : [`${(x(index) * 118 + 1).toFixed(1)},${(23 - 22 * value).toFixed(1)}`],
  );
  const percent = (share: number) => `${Math.round(share * 100)}%`;
  const label = `${percent(first)} in use at ${timeText(begin)}, ${percent(last)} now`;
  return (
    <svg class="line" role="img" aria-label={label} viewBox="0 0 120 24" width="120" height="24">
      <polyline points={points.join(' ')} />
    </svg>
  );
}

const POOL_COLUMNS = (times: readonly number[]): readonly Column<PoolRow>[] => [
  { title: 'Pool', sort: 'pool', cell: ({ name }) => <a href={poolHref(name)}>{name}</a> },
  { title: 'State', sort: '-problems', cell: (pool) => <PoolState {...pool} /> },
  { title: 'Network', sort: 'network', isExtra: true, cell: ({ network }) => network },
  {
    title: 'Subnets',
    cell: ({ cidrs }) =>
      cidrs.map((cidr) => (
        <div class="number" key={cidr}>
          {cidr}
        </div>
      )),
  },
  { title: 'In use', sort: '-use', cell: ({ counts }) => counts.map((each) => <Use key={each.family} {...each} />) },
  { title: 'Free', sort: 'free', cell: ({ counts }) => <Numbers values={counts.map(({ free }) => free)} /> },
  {
    title: 'Cooling down',
    sort: '-cooling',
    cell: ({ counts }) => <Numbers values={counts.map(({ cooling }) => cooling)} />,
  },
  {
    title: times[0] === undefined ? 'Over time' : `Since ${timeText(times[0])}`,
    isExtra: true,
    cell: ({ used }) => <UseLine used={used} times={times} />,
  },
];

function PoolState({ isReady, problems }: PoolRow): VNode {
  if (!isReady) return <span class="badge">not ready</span>;
  return problems.length === 0 ? <>ready</> : <span class="badge">problem</span>;
}

type PoolTableProps = Pick<TableProps<PoolRow>, 'list' | 'empty' | 'sorting'> & { readonly times: readonly number[] };

export function PoolTable({ times, ...props }: PoolTableProps): VNode {
  const note = ({ problems }: PoolRow) => problems.length > 0 && <Problems problems={problems} />;
  return <Table caption="Pools" columns={POOL_COLUMNS(times)} note={note} keyOf={({ name }) => name} {...props} />;
}

/** A bar with the numbers beside it. Its empty part is what claims and pods may get. */
function Use({ family, leased, capacity, cooling, free }: ShownPoolCounts): VNode {
  const share = (count: number) => `${(100 * count) / Math.max(capacity, 1)}%`;
  const isFull = free === 0;
  return (
    <div class="number">
      <span class={isFull ? 'bar full' : 'bar'} aria-hidden="true">
        <span class="s-allocated" style={{ width: share(leased) }} />
        <span class="s-cooling" style={{ width: share(cooling) }} />
        <span class="s-reserved" style={{ width: share(Math.max(capacity - leased - cooling - free, 0)) }} />
      </span>
      {`${family} ${formatCount(leased)} of ${formatCount(capacity)}`}
      {isFull && <strong class="badge"> full</strong>}
    </div>
  );
}

/** A number for each family, below one another. */
function Numbers({ values }: { values: readonly number[] }): VNode {
  return (
    <>
      {values.map((value, index) => (
        <div class="number" key={index}>
          {formatCount(value)}
        </div>
      ))}
    </>
  );
}

export function timeText(time: number | string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? '' : date.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'medium' });
}

/**
 * A field that narrows a list or searches, without a key press too many. What the user writes stays, even while updates of the view arrive:
 * `value` follows it later, by way of the address of the page.
 */
export function SearchField({
  label,
  value,
  onInput,
}: {
  label: string;
  value: string;
  onInput: (text: string) => void;
}): VNode {
  const input = useRef<HTMLInputElement>(null);
  const sent = useRef('');
  useLayoutEffect(() => {
    if (input.current !== null && value !== sent.current) input.current.value = value;
    sent.current = value;
  }, [value]);
  const send = (text: string) => {
    sent.current = text;
    onInput(text);
  };
  return (
    <label class="search">
      {label} <input type="search" ref={input} onInput={({ currentTarget }) => send(currentTarget.value)} />
    </label>
  );
}

export function Fact({ name, value }: { name: string; value: string }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}
