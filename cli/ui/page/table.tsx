import { type ComponentChildren, Fragment, type VNode } from 'preact';
import type { BoundedList } from '../protocol.js';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** The name by which the server sorts the rows; after `-` if descending order is the useful one. */
  readonly sort?: string;
  /** Narrow tables leave it out. */
  readonly isExtra?: boolean;
}

/** The order of a list, in the words of the server. */
export interface Sorting {
  readonly by: string;
  readonly sortBy: (by: string) => void;
}

export interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  /** Below the row and as wide as the table: what is wrong with it, in sentences. Nothing if it is empty or false. */
  readonly note?: (row: Row) => ComponentChildren;
  readonly sorting?: Sorting | undefined;
  readonly list: BoundedList<Row>;
  /** Shown in place of an empty table. */
  readonly empty: string;
  /** What does not change while the row is about the same object: a row with a new key is a new element, without the focus. */
  readonly keyOf: (row: Row) => string;
}

/** A table of a list; the first column names the row. Narrow windows show each row as a card, without the layout of a table: roles keep its meaning. */
export function Table<Row>({ caption, columns, note, sorting, list, empty, keyOf }: TableProps<Row>): VNode {
  if (list.total === 0) return <p class="empty">{empty}</p>;
  const keys = uniqueKeys(list.rows.map(keyOf));
  return (
    <div class="table" role="region" aria-label={caption} tabIndex={0}>
      <table role="table">
        <caption>
          {caption}: {list.total}
          {list.rows.length < list.total && `, of which the first ${list.rows.length} are shown. Filter to see others.`}
        </caption>
        <thead role="rowgroup">
          <tr role="row">
            {columns.map((column) => (
              <Heading key={column.title} {...column} sorting={sorting} />
            ))}
          </tr>
        </thead>
        <tbody role="rowgroup">
          {list.rows.map((row, index) => {
            const below = note?.(row);
            const isNoted = Boolean(below);
            return (
              <Fragment key={keys[index]}>
                <tr role="row" class={isNoted ? 'noted' : ''}>
                  {columns.map(({ title, cell, isExtra }, column) =>
                    column === 0 ? (
                      <th scope="row" role="rowheader" key={title}>
                        {cell(row)}
                      </th>
                    ) : (
                      <td role="cell" class={isExtra === true ? 'extra' : ''} data-title={title} key={title}>
                        {cell(row)}
                      </td>
                    ),
                  )}
                </tr>
                {isNoted && (
                  <tr role="row" class="note">
                    <td role="cell" colSpan={columns.length}>
                      {below}
                    </td>
                  </tr>
                )}
              </Fragment>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function Heading<Row>({ title, sort, isExtra, sorting }: Column<Row> & Pick<TableProps<Row>, 'sorting'>): VNode {
  const attributes = { scope: 'col', role: 'columnheader', class: isExtra === true ? 'extra' : '' } as const;
  if (sort === undefined || sorting === undefined) return <th {...attributes}>{title}</th>;
  const { by, sortBy } = sorting;
  const order = by === sort || by === opposite(sort) ? by : '';
  const isDescending = order.startsWith('-');
  return (
    <th {...attributes} aria-sort={order === '' ? 'none' : isDescending ? 'descending' : 'ascending'}>
      <button type="button" onClick={() => sortBy(order === sort ? opposite(sort) : sort)}>
        {title} <span aria-hidden="true">{order === '' ? '↕' : isDescending ? '↓' : '↑'}</span>
      </button>
    </th>
  );
}

function opposite(sort: string): string {
  return sort.startsWith('-') ? sort.slice(1) : `-${sort}`;
}

/** Numbers equal keys. */
function uniqueKeys(keys: readonly string[]): string[] {
  const counts = new Map<string, number>();
  return keys.map((key) => {
    const count = (counts.get(key) ?? 0) + 1;
    counts.set(key, count);
    return `${key} ${count}`;
  });
}
