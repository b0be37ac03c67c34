import { type VNode, render } from 'preact';
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { type Operation, applyPatch } from 'fast-json-patch';
import type { ServerView } from '../protocol.js';
import { systemClock } from '../../../kube/clock.js';
import { SearchField } from './elements.jsx';
import { type Connection, Notices } from './notices.jsx';
import { type Route, isEntrance, placeOf, readRoute, viewQuery } from '../route.js';
import { Pool, Pools, Search, type SetParam, Vms, Waiting } from './views.jsx';
import { Vm } from './vm.jsx';

const LINKS = [
  { view: 'pools', text: 'Pools' },
  { view: 'vms', text: 'VMs' },
  { view: 'waiting', text: 'Waiting' },
];

function App(): VNode {
  const [route, setParam] = useRoute();
  const { view, connection, heardAt } = useView(viewQuery(route), placeOf(route));
  useEntrance(view);
  const title = titleOf(route);
  const heading = useHeadingFocus(title);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), heading.current?.focus())}>
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          Holdfast
        </a>
        <nav aria-label="Views">
          {LINKS.map(({ view: name, text }) => (
            <a key={name} href={`#/${name}`} aria-current={route.view === name ? 'page' : undefined}>
              {text}
            </a>
          ))}
        </nav>
        <div role="search">
          <SearchField
            label="Search"
            value={route.view === 'search' ? (route.params.get('q') ?? '') : ''}
            onInput={(text) => {
              const href = `#/search?${new URLSearchParams({ q: text }).toString()}`;
              // "back" leads to the view from which the search began
              if (readRoute(location.hash).view === 'search') location.replace(href);
              else location.assign(href);
            }}
          />
        </div>
        <p role="status" class={`connection ${connection}`}>
          {CONNECTIONS[connection]}
        </p>
      </header>
      <main id="main">
        <h1 tabIndex={-1} ref={heading}>
          {title}
        </h1>
        {view === undefined ? (
          <p>Loading…</p>
        ) : (
          <>
            <Notices view={view} connection={connection} heardAt={heardAt} />
            <Body view={view} route={route} setParam={setParam} />
          </>
        )}
      </main>
    </>
  );
}

const POOLS_RESOURCE = 'addresspools.ipam.holdfast.dev';

const CONNECTIONS: Readonly<Record<Connection, string>> = {
  connecting: 'Connecting…',
  live: 'Live',
  lost: 'Connection lost. Trying again…',
  ended: 'The server has ended. Run kubectl holdfast ui again.',
};

function Body(props: { view: ServerView; route: Route; setParam: SetParam }): VNode {
  const { view } = props;
  switch (view.view) {
    case 'pools':
      return <Pools {...props} view={view} />;
    case 'pool':
      return <Pool {...props} view={view} />;
    case 'vms':
      return <Vms {...props} view={view} />;
    case 'vm':
      return <Vm view={view} />;
    case 'waiting':
      return <Waiting {...props} view={view} />;
    case 'search':
      return <Search {...props} view={view} />;
  }
}

function useRoute(): [Route, SetParam] {
  const [route, setRoute] = useState(() => readRoute(location.hash));
  useEffect(() => {
    const update = () => setRoute(readRoute(location.hash));
    addEventListener('hashchange', update);
    return () => removeEventListener('hashchange', update);
  }, []);
  const setParam = useCallback<SetParam>((key, value) => {
    const [path = '', query = ''] = location.hash.split('?', 2);
    const params = new URLSearchParams(query);
    if (value === '') params.delete(key);
    else params.set(key, value);
    location.replace(`${path === '' ? '#/pools' : path}?${params.toString()}`);
  }, []);
  return [route, setParam];
}

/** Owners of VMs, who may not read pools, begin at the VMs. */
function useEntrance(view: ServerView | undefined): void {
  const isOwner = view?.parts.some(({ resource, state }) => resource === POOLS_RESOURCE && state === 'refused');
  useEffect(() => {
    if (isOwner === true && isEntrance(location.hash)) location.replace('#/vms');
  }, [isOwner]);
}

/** Moves the focus to the heading of a new view, so that screen readers read it. Not on the first one: the browser begins there anyway. */
function useHeadingFocus(title: string) {
  const heading = useRef<HTMLHeadingElement>(null);
  const isFirst = useRef(true);
  // before the next key press
  useLayoutEffect(() => {
    document.title = `${title} – Holdfast`;
    // whoever types into a search field continues to type
    if (!isFirst.current && !(document.activeElement instanceof HTMLInputElement)) heading.current?.focus();
    isFirst.current = false;
  }, [title]);
  return heading;
}

function titleOf({ view, namespace, name }: Route): string {
  if (view === 'pool') return `Pool ${name}`;
  if (view === 'vm') return `VM ${namespace}/${name}`;
  return view === 'search' ? 'Search' : (LINKS.find((link) => link.view === view)?.text ?? '');
}

/** The server sends a sign of life every 10 seconds. */
const SILENT_MS = 30_000;

/**
 * Follows a view on the server while the page is visible: browsers open only a few connections to a host.
 * @param place what the query is about: until the server answers, what it sent for the same place stays
 */
function useView(query: string, place: string) {
  const [shown, setShown] = useState<{ place: string; view: ServerView }>();
  const [connection, setConnection] = useState<Connection>('connecting');
  const heardAt = useRef(systemClock.wall());
  const isVisible = useIsVisible();
  useEffect(() => {
    if (!isVisible) return undefined;
    const source = new EventSource(`views?${query}`);
    let current: ServerView | undefined;
    const hear = () => {
      heardAt.current = systemClock.wall();
      setConnection('live');
    };
    const show = (next: ServerView) => {
      current = next;
      setShown({ place, view: next });
      hear();
    };
    source.addEventListener('snapshot', ({ data }: MessageEvent<string>) => show(JSON.parse(data) as ServerView));
    source.addEventListener('patch', ({ data }: MessageEvent<string>) => {
      if (current !== undefined) show(applyPatch(current, JSON.parse(data) as Operation[], false, false).newDocument);
    });
    source.addEventListener('beat', hear);
    source.addEventListener('failure', () => setConnection('lost'));
    source.addEventListener('error', () => setConnection(source.readyState === EventSource.CLOSED ? 'ended' : 'lost'));
    // a server that hangs, or a machine that slept, closes no connection
    const watch = setInterval(() => {
      if (systemClock.wall() - heardAt.current > SILENT_MS) setConnection('lost');
    }, SILENT_MS / 6);
    return () => {
      clearInterval(watch);
      source.close();
    };
  }, [query, isVisible]);
  return { view: shown?.place === place ? shown.view : undefined, connection, heardAt: heardAt.current };
}

function useIsVisible(): boolean {
  const [isVisible, setIsVisible] = useState(!document.hidden);
  useEffect(() => {
    const update = () => setIsVisible(!document.hidden);
    document.addEventListener('visibilitychange', update);
    return () => document.removeEventListener('visibilitychange', update);
  }, []);
  return isVisible;
}

const root = document.getElementById('app');
root?.replaceChildren();
if (root !== null) render(<App />, root);
