/** Where the page is: the part of its address after `#/`. It never leaves the browser. */
export interface Route {
  /** `pools`, `pool`, `vms`, `vm`, `waiting` or `search`. */
  readonly view: string;
  readonly namespace: string;
  readonly name: string;
  readonly params: URLSearchParams;
}

const VIEWS = ['pools', 'pool', 'vms', 'vm', 'waiting', 'search'];

/** Reads `#/pool/blue?at=10.0.0.0`; anything else leads to the pools. */
export function readRoute(hash: string): Route {
  const [path = '', query = ''] = hash.replace(/^#\/?/, '').split('?', 2);
  const [view = '', ...names] = path.split('/').map(decode);
  const [namespace = '', name = ''] = view === 'vm' ? names : ['', ...names];
  const params = new URLSearchParams(query);
  return { view: VIEWS.includes(view) ? view : 'pools', namespace, name, params };
}

/** Whether the address names no view, as when the page is opened. */
export function isEntrance(hash: string): boolean {
  return /^#?\/?$/.test(hash);
}

/** Returns the query of the stream that shows a route. */
export function viewQuery({ view, namespace, name, params }: Route): string {
  const query = new URLSearchParams({ view, namespace, name });
  for (const key of ['q', 'sort', 'at', 'bits']) {
    const value = params.get(key);
    if (value !== null) query.set(key, value);
  }
  return query.toString();
}

/** What a view is about. Its parameters only choose a part of it. */
export function placeOf({ view, namespace, name }: Route): string {
  return [view, namespace, name].join('/');
}

export function poolHref(name: string, at?: { readonly first: string; readonly bits: number }): string {
  const query = at === undefined ? '' : `?${new URLSearchParams({ at: at.first, bits: String(at.bits) }).toString()}`;
  return `#/pool/${encodeURIComponent(name)}${query}`;
}

export function vmHref(namespace: string, name: string): string {
  return `#/vm/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
