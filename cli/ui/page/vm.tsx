import type { VNode } from 'preact';
import type { Health, TraceNode } from '../../trace/tree.js';
import { type EventRow, type LeaseRow, type ServerView, type VmView, emptyText } from '../protocol.js';
import { Fact, timeText } from './elements.jsx';
import { poolHref } from '../route.js';
import { type Column, Table } from './table.jsx';

export function Vm({ view }: { readonly view: VmView & Pick<ServerView, 'parts'> }): VNode {
  const { vm, story, failure, leases, events, parts } = view;
  return (
    <>
      {vm === undefined ? (
        <p class="empty">There is no VM of this name, or you may not read it.</p>
      ) : (
        <dl class="facts">
          <Fact name="Status" value={vm.status} />
          <Fact name="Node" value={vm.node} />
          <Fact name="Addresses" value={vm.addresses.join(', ') || emptyText(parts, 'ipamclaims', 'none')} />
        </dl>
      )}
      <h2>Story</h2>
      {failure !== undefined && <p class="badge">{`The story could not be read again: ${failure}`}</p>}
      {story === undefined ? <p class="empty">Nothing is known about this VM yet.</p> : <Story nodes={[story]} />}
      <h2>Leases and events</h2>
      <Table
        caption="Leases"
        columns={LEASE_COLUMNS}
        list={{ rows: leases, total: leases.length }}
        empty="No lease of its claims is known."
        keyOf={({ address, pool }) => `${pool} ${address}`}
      />
      <Table
        caption="Events"
        columns={EVENT_COLUMNS}
        note={({ message }) => message}
        list={events}
        empty={emptyText(parts, 'events', 'There are no events. Kubernetes deletes them after an hour.')}
        keyOf={({ object, reason, last, message }) => `${object} ${reason} ${last} ${message}`}
      />
    </>
  );
}

const LEASE_COLUMNS: readonly Column<LeaseRow>[] = [
  {
    title: 'Address',
    cell: ({ address, pool }) => <a href={poolHref(pool, { first: address, bits: 8 })}>{address}</a>,
  },
  { title: 'Pool', cell: ({ pool }) => <a href={poolHref(pool)}>{pool}</a> },
  {
    title: 'State',
    cell: ({ state, releasedAt }) => (releasedAt === undefined ? state : `released at ${timeText(releasedAt)}`),
  },
  { title: 'Node', cell: ({ node }) => node },
  { title: 'MAC address', cell: ({ mac }) => mac },
];

const EVENT_COLUMNS: readonly Column<EventRow>[] = [
  { title: 'Last seen', cell: ({ last, count }) => `${timeText(last)}${count > 1 ? `, ${count} times` : ''}` },
  { title: 'Type', cell: ({ type }) => <span class={type === 'Warning' ? 'badge' : ''}>{type}</span> },
  { title: 'Reason', cell: ({ reason }) => reason },
  { title: 'Object', cell: ({ object }) => object },
];

const WORDS: Readonly<Record<Health, string>> = {
  ok: 'OK',
  progress: 'in progress',
  unknown: 'unknown',
  warning: 'warning',
  wrong: 'wrong',
};

/** The objects of a VM, each with its state, what is wrong and what to do. */
function Story({ nodes }: { nodes: readonly TraceNode[] }): VNode | null {
  if (nodes.length === 0) return null;
  return (
    <ul class="story">
      {nodes.map(({ kind, name, state, health, findings, children }) => (
        <li key={`${kind} ${name}`} class={health}>
          <span class={`health ${health}`}>{WORDS[health]}</span> {kind} <strong>{name}</strong>: {state}
          {findings.map(({ reason, message, remedy }) => (
            <p key={`${reason ?? ''} ${message}`}>
              {reason !== undefined && `${reason}: `}
              {message}
              {remedy !== undefined && `: ${remedy}`}
            </p>
          ))}
          <Story nodes={children} />
        </li>
      ))}
    </ul>
  );
}
