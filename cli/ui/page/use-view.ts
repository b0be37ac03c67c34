import { applyPatch, type Operation } from 'fast-json-patch';
import { useEffect, useState } from 'preact/hooks';
import type { ServerView } from '../protocol.js';

/** `ended`: the server has stopped, or does not know this browser any more. */
export type Connection = 'connecting' | 'live' | 'lost' | 'ended';

/**
 * Follows a view on the server while the page is visible: browsers open only a few connections to a host.
 * @param place what the query is about: until the server answers, what it sent for the same place stays
 */
export function useView(query: string, place: string): { view: ServerView | undefined; connection: Connection } {
  const [shown, setShown] = useState<{ place: string; view: ServerView }>();
  const [connection, setConnection] = useState<Connection>('connecting');
  const isVisible = useIsVisible();
  useEffect(() => {
    if (!isVisible) return undefined;
    const source = new EventSource(`views?${query}`);
    let current: ServerView | undefined;
    const show = (next: ServerView) => {
      current = next;
      setShown({ place, view: next });
      setConnection('live');
    };
    source.addEventListener('snapshot', ({ data }: MessageEvent<string>) => show(JSON.parse(data) as ServerView));
    source.addEventListener('patch', ({ data }: MessageEvent<string>) => {
      if (current !== undefined) show(applyPatch(current, JSON.parse(data) as Operation[], false, false).newDocument);
    });
    source.addEventListener('failure', () => setConnection('lost'));
    source.addEventListener('error', () => setConnection(source.readyState === EventSource.CLOSED ? 'ended' : 'lost'));
    return () => source.close();
  }, [query, isVisible]);
  return { view: shown?.place === place ? shown.view : undefined, connection };
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
