import { Fragment, type VNode } from 'preact';
import { ADDRESS_STATES, COUNTS, formatCount } from '../../../addressing/address-states.js';
import {
  type ClaimRow,
  type ConditionRow,
  type FindingRow,
  type PoolView,
  type PoolsView,
  type SearchHit,
  type SearchView,
  type ServerView,
  type VmRow,
  type VmsView,
  type WaitingView,
  emptyText,
} from '../protocol.js';
import { AddressMap } from './address-map.jsx';
import { Fact, PoolTable, Problems, SearchField, UseLine, timeText } from './elements.jsx';
import { type Route, poolHref, vmHref } from '../route.js';
import { type Column, type Sorting, Table } from './table.jsx';

/** Changes one parameter of the route, without a new entry in the browser's history. */
export type SetParam = (key: string, value: string) => void;

interface ViewProps<View> {
  readonly view: View & Pick<ServerView, 'parts'>;
  readonly route: Route;
  readonly setParam: SetParam;
}

export function Pools({ view, route, setParam }: ViewProps<PoolsView>): VNode {
  return (
    <>
      <Filter route={route} setParam={setParam} />
      <PoolTable list={view.pools} times={view.times} empty="No pool is shown." sorting={sortingOf(route, setParam)} />
    </>
  );
}

export function Pool({ view, route }: ViewProps<PoolView>): VNode {
  const { pool, conditions, times, subnets, window: shown, waiting } = view;
  if (pool === undefined) return <p class="empty">There is no pool of this name, or you may not read it.</p>;
  const { counts, heldByStopped, network, problems } = pool;
  return (
    <>
      <Problems problems={problems} />
      <dl class="facts">
        <Fact name="Network" value={network} />
        {counts.map(({ family, ...ofFamily }) => (
          <Fragment key={family}>
            <Fact name={`${family} capacity`} value={formatCount(ofFamily.capacity)} />
            {COUNTS.filter(({ field, isOptional }) => !(isOptional && ofFamily[field] === 0)).map(
              ({ state, field }) => (
                <Fact
                  key={field}
                  name={`${family} ${ADDRESS_STATES[state].text}`}
                  value={formatCount(ofFamily[field])}
                />
              ),
            )}
          </Fragment>
        ))}
        {heldByStopped !== undefined && <Fact name="Held by stopped VMs" value={formatCount(heldByStopped)} />}
        <div>
          <dt>{times[0] === undefined ? 'Use' : `Use since ${timeText(times[0])}`}</dt>
          <dd>
            <UseLine used={pool.used} times={times} />
          </dd>
        </div>
      </dl>
      <h2>Addresses</h2>
      {subnets.length > 1 && (
        <nav aria-label="Subnets" class="subnets">
          {subnets.map(({ cidr, top, bits }) => (
            <a key={cidr} href={poolHref(pool.name, { first: top, bits })}>
              {cidr}
            </a>
          ))}
        </nav>
      )}
      {shown === undefined ? (
        <p class="empty">The map needs all AddressLeases, the right to list them, and a pool whose spec is valid.</p>
      ) : (
        <AddressMap pool={pool.name} shown={shown} at={route.params.get('at') ?? ''} />
      )}
      <h2>Waiting for an address</h2>
      <Table
        caption="Claims that wait"
        columns={CLAIM_COLUMNS}
        note={({ problems }) => problems.length > 0 && <Problems problems={problems} />}
        list={waiting}
        empty={emptyText(view.parts, 'ipamclaims', 'No claim waits because the pool is full.')}
        keyOf={({ namespace, name }) => `${namespace}/${name}`}
      />
      <h2>Conditions</h2>
      <Table
        caption="Conditions"
        columns={CONDITION_COLUMNS}
        note={({ message }) => message}
        list={{ rows: conditions, total: conditions.length }}
        empty="There are no conditions yet."
        keyOf={({ type }) => type}
      />
    </>
  );
}

const CLAIM_COLUMNS: readonly Column<ClaimRow>[] = [
  {
    title: 'VM',
    cell: ({ namespace, vm, name }) =>
      vm === '' ? `${namespace}/${name}` : <a href={vmHref(namespace, vm)}>{`${namespace}/${vm}`}</a>,
  },
  { title: 'Network', cell: ({ network }) => network },
  { title: 'Addresses', cell: ({ addresses }) => addresses.join(', ') || 'none' },
  { title: 'MAC address', cell: ({ mac }) => mac },
  { title: 'State', cell: ({ state }) => state },
];

export function Vms({ view, route, setParam }: ViewProps<VmsView>): VNode {
  return (
    <>
      <Filter route={route} setParam={setParam} />
      <Table
        caption="VMs"
        columns={VM_COLUMNS}
        note={({ problem }) => problem !== '' && <p class="problem">{problem}</p>}
        sorting={sortingOf(route, setParam)}
        list={view.vms}
        empty="No VM is shown."
        keyOf={({ namespace, name }) => `${namespace}/${name}`}
      />
    </>
  );
}

const VM_COLUMNS: readonly Column<VmRow>[] = [
  {
    title: 'VM',
    sort: 'vm',
    cell: ({ namespace, name }) => <a href={vmHref(namespace, name)}>{`${namespace}/${name}`}</a>,
  },
  { title: 'Status', sort: 'status', cell: ({ status }) => status },
  { title: 'Addresses', sort: 'addresses', cell: ({ addresses }) => addresses.join(', ') || 'none' },
  { title: 'Node', sort: 'node', cell: ({ node }) => node },
  { title: 'Problem', sort: '-problem', cell: ({ problem }) => problem !== '' && <span class="badge">see below</span> },
];

function sortingOf({ params }: Route, setParam: SetParam): Sorting {
  return { by: params.get('sort') ?? '', sortBy: (by) => setParam('sort', by) };
}

export function Waiting({ view }: ViewProps<WaitingView>): VNode {
  return (
    <>
      {view.failure !== undefined && <p class="badge">{`The cluster could not be read again: ${view.failure}`}</p>}
      {view.findings === undefined ? (
        <p class="empty">The cluster is being read…</p>
      ) : (
        <Table
          caption="What is wrong"
          columns={FINDING_COLUMNS}
          note={({ problem, remedy }) => `${problem} → ${remedy}`}
          list={view.findings}
          empty="Nothing is wrong with what you may read."
          keyOf={({ object, problem }) => `${object} ${problem}`}
        />
      )}
      <PoolTable
        list={view.pools}
        times={[]}
        empty={emptyText(view.parts, 'addresspools', 'All pools are ready and have free addresses.')}
      />
    </>
  );
}

const FINDING_COLUMNS: readonly Column<FindingRow>[] = [
  { title: 'Object', cell: ({ object }) => <ObjectName object={object} /> },
  { title: 'Severity', cell: ({ severity }) => <span class={severity === 'error' ? 'badge' : ''}>{severity}</span> },
];

function ObjectName({ object }: { object: string }): VNode {
  const [, namespace, name] = /^VirtualMachine(?:Instance)? (.*)\/(.*)$/.exec(object) ?? [];
  return namespace === undefined || name === undefined ? <>{object}</> : <a href={vmHref(namespace, name)}>{object}</a>;
}

export function Search({ view, route }: ViewProps<SearchView>): VNode {
  const query = route.params.get('q') ?? '';
  const empty =
    query === '' ? 'Write an address, a MAC address, or a part of a name.' : `Nothing found for “${query}”.`;
  return (
    <Table
      caption="Found"
      columns={HIT_COLUMNS}
      list={view.hits}
      empty={empty}
      keyOf={({ kind, href }) => `${kind} ${href}`}
    />
  );
}

const HIT_COLUMNS: readonly Column<SearchHit>[] = [
  { title: 'Name', cell: ({ text, href }) => <a href={href}>{text}</a> },
  { title: 'Kind', cell: ({ kind }) => kind },
  { title: 'Details', cell: ({ detail }) => detail },
];

const CONDITION_COLUMNS: readonly Column<ConditionRow>[] = [
  { title: 'Type', cell: ({ type }) => type },
  { title: 'Status', cell: ({ status }) => status },
  { title: 'Reason', cell: ({ reason }) => reason },
  { title: 'Since', cell: ({ since }) => timeText(since) },
];

function Filter({ route, setParam }: { route: Route; setParam: SetParam }): VNode {
  return <SearchField label="Filter" value={route.params.get('q') ?? ''} onInput={(text) => setParam('q', text)} />;
}
