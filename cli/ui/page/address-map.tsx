import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { ADDRESS_STATES, STATE_NAMES } from '../../../addressing/address-states.js';
import type { LeaseRow, MapCell, MapWindow } from '../protocol.js';
import { timeText } from './elements.jsx';
import { CELL_STEP, cellLabel, columnsOf, moveTo, paint, stateOf } from './map-geometry.js';
import { poolHref, vmHref } from '../route.js';

interface MapProps {
  readonly pool: string;
  readonly shown: MapWindow;
  /** The address that was searched for. */
  readonly at: string;
}

/**
 * The addresses of a subnet as a grid of up to 256 cells, for the keyboard and screen readers too. Behind it, a picture shows the state of up to
 * 65,536 addresses, so that the number of elements does not grow with the subnet.
 */
export function AddressMap({ pool, shown, at }: MapProps): VNode {
  const { first, last, bits, cells } = shown;
  const [active, setActive] = useState(0);
  const [pointed, setPointed] = useState<number>();
  const grid = useRef<HTMLDivElement>(null);
  const hasFocus = useRef(false);
  const wanted = cells.findIndex((cell) => cell.first === at);
  // before the next key press, which moves from there
  useLayoutEffect(() => setActive(Math.max(0, wanted)), [first, bits, at]);
  useLayoutEffect(() => {
    if (hasFocus.current) grid.current?.querySelector<HTMLElement>('[tabindex="0"]')?.focus();
  }, [active, first, bits]);

  const zoom = (address: string, size: number) => {
    location.hash = poolHref(pool, { first: address, bits: size });
  };
  const zoomIn = (cell: MapCell | undefined) => {
    if (cell !== undefined && bits > CELL_STEP) zoom(cell.first, bits - CELL_STEP);
  };
  const zoomOut = () => zoom(first, bits + CELL_STEP);
  const columns = columnsOf(cells.length);
  const onKeyDown = (event: KeyboardEvent) => {
    const next = moveTo(event.key, active, cells.length);
    if (next !== undefined) setActive(next);
    else if (event.key === 'Enter' || event.key === ' ' || event.key === '+') zoomIn(cells[active]);
    else if (event.key === 'Escape' || event.key === 'Backspace' || event.key === '-') zoomOut();
    else return;
    event.preventDefault();
  };
  const rows = Array.from({ length: Math.ceil(cells.length / columns) }, (_, row) => row * columns);
  return (
    <div class="map">
      <p>
        <button type="button" onClick={zoomOut}>
          Zoom out
        </button>{' '}
        <button type="button" disabled={bits <= CELL_STEP} onClick={() => zoomIn(cells[active])}>
          Zoom in
        </button>{' '}
        <strong>{`${first} – ${last}`}</strong>
      </p>
      <p class="quiet" id="map-help">
        Arrow keys move, Enter zooms in, Escape zooms out.
      </p>
      <div class="map-area">
        {bits > CELL_STEP && <Picture shown={shown} columns={columns} />}
        <div
          ref={grid}
          role="grid"
          aria-label={`Addresses ${first} to ${last}`}
          aria-describedby="map-help"
          class={bits > CELL_STEP ? 'grid' : 'grid single'}
          style={{ gridTemplateColumns: `repeat(${columns}, 1fr)` }}
          onKeyDown={onKeyDown}
          onFocusIn={() => {
            hasFocus.current = true;
          }}
          onFocusOut={() => {
            hasFocus.current = false;
          }}
        >
          {rows.map((from) => (
            <div role="row" key={from}>
              {cells.slice(from, from + columns).map((cell, offset) => (
                <div
                  role="gridcell"
                  // the element of a place stays when the window changes, and keeps the focus
                  key={from + offset}
                  class={bits > CELL_STEP ? 'cell' : `cell s-${stateOf(cell)}`}
                  tabIndex={from + offset === active ? 0 : -1}
                  aria-label={describe(cell)}
                  aria-selected={from + offset === active}
                  onClick={() => {
                    setActive(from + offset);
                    zoomIn(cell);
                  }}
                  onMouseEnter={() => setPointed(from + offset)}
                  onMouseLeave={() => setPointed(undefined)}
                >
                  {bits > CELL_STEP ? '' : <span>{cellLabel(cell.first)}</span>}
                </div>
              ))}
            </div>
          ))}
        </div>
      </div>
      <div class="details">
        <Details cell={cells[pointed ?? active]} />
        <Legend />
      </div>
    </div>
  );
}

/** One pixel for each address, or for each cell of a larger window. */
function Picture({ shown, columns }: { shown: MapWindow; columns: number }): VNode {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [scheme, setScheme] = useState(0);
  useEffect(() => {
    const dark = matchMedia('(prefers-color-scheme: dark)');
    const repaint = () => setScheme((count) => count + 1);
    dark.addEventListener('change', repaint);
    return () => dark.removeEventListener('change', repaint);
  }, []);
  useLayoutEffect(() => {
    if (canvas.current !== null) paint(canvas.current, shown, columns);
  }, [shown, columns, scheme]);
  return <canvas ref={canvas} aria-hidden="true" />;
}

function Details({ cell }: { cell: MapCell | undefined }): VNode {
  if (cell === undefined) return <p />;
  return (
    <div class="cell-details">
      <h3>{cell.first === cell.last ? cell.first : `${cell.first} – ${cell.last}`}</h3>
      <ul>
        {STATE_NAMES.flatMap((state) => {
          const count = cell.counts[state];
          return count === undefined ? [] : <li key={state}>{`${ADDRESS_STATES[state].text}: ${count}`}</li>;
        })}
      </ul>
      {cell.lease !== undefined && <Lease lease={cell.lease} />}
    </div>
  );
}

function Lease({ lease: { owner, node, mac, takenBy, releasedAt } }: { lease: LeaseRow }): VNode {
  return (
    <ul>
      {owner !== undefined && (
        <li>
          {releasedAt === undefined ? 'Owner: ' : 'Last owner: '}
          {owner.vm === undefined ? (
            `${owner.kind} ${owner.namespace}/${owner.name}`
          ) : (
            <a href={vmHref(owner.namespace, owner.vm)}>{`VM ${owner.namespace}/${owner.vm}`}</a>
          )}
        </li>
      )}
      {node !== undefined && <li>{`Node: ${node}`}</li>}
      {mac !== undefined && <li>{`MAC address: ${mac}`}</li>}
      {takenBy !== undefined && <li>{`Quarantined, because ${takenBy} has it`}</li>}
      {releasedAt !== undefined && <li>{`Released: ${timeText(releasedAt)}`}</li>}
    </ul>
  );
}

function Legend(): VNode {
  return (
    <ul class="legend" aria-label="Colours and lines">
      {STATE_NAMES.map((state) => (
        <li key={state}>
          <span class={`swatch s-${state}`} aria-hidden="true" /> {ADDRESS_STATES[state].text}
        </li>
      ))}
    </ul>
  );
}

function describe(cell: MapCell): string {
  const range = cell.first === cell.last ? cell.first : `${cell.first} to ${cell.last}`;
  const counts = STATE_NAMES.flatMap((state) => {
    const count = cell.counts[state];
    const { text } = ADDRESS_STATES[state];
    if (count === undefined) return [];
    return cell.first === cell.last ? text : `${count} ${text}`;
  });
  const owner = cell.lease?.owner;
  return [range, ...counts, ...(owner === undefined ? [] : [`${owner.namespace}/${owner.vm ?? owner.name}`])].join(
    ', ',
  );
}
