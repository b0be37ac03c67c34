import type { VNode } from 'preact';
import type { PartStatus, ServerView } from '../protocol.js';
import { timeText } from './elements.jsx';

/** `ended`: the server has stopped, or does not know this browser any more. */
export type Connection = 'connecting' | 'live' | 'lost' | 'ended';

interface NoticesProps {
  readonly view: ServerView;
  readonly connection: Connection;
  /** When the server last sent something, in milliseconds since the epoch. */
  readonly heardAt: number;
}

/** What a user must know before believing a view: what is old, what does not work, and what is not shown. */
export function Notices({ view: { parts, alerts }, connection, heardAt }: NoticesProps): VNode {
  const isAway = connection === 'lost' || connection === 'ended';
  const banners = [
    ...(isAway ? [`What is shown is of ${timeText(heardAt)}: kubectl holdfast ui does not answer this page.`] : []),
    ...interruptions(parts),
    ...alerts.map(({ object, problem, remedy }) => `${object}: ${problem} → ${remedy}`),
  ];
  return (
    <>
      {banners.length > 0 && (
        <div role="alert" class="banner">
          {banners.map((text) => (
            <p key={text}>{text}</p>
          ))}
        </div>
      )}
      <Missing parts={parts} />
    </>
  );
}

function interruptions(parts: readonly PartStatus[]): string[] {
  const interrupted = parts.filter(({ state }) => state === 'interrupted');
  const [first] = interrupted;
  if (first === undefined) return [];
  const lines = interrupted.map(
    ({ resource, message = '', since = 0 }) => `${resource} of ${timeText(since)}, may be old: ${message}`,
  );
  if (parts.some(({ state }) => state === 'live')) return lines;
  const { message = '', since = 0 } = first;
  const old = `Nothing could be read from the API server since ${timeText(since)}, so what is shown may be old`;
  return [`${old}. ${message}`];
}

/** In one line, unless the user wants to know more: who has few rights sees it on each view. */
function Missing({ parts }: { parts: readonly PartStatus[] }): VNode | null {
  const lines = parts.flatMap(({ resource, state, namespace, message = '' }) => {
    if (state === 'refused') return `${resource}: ${message}`;
    return state === 'live' && namespace !== undefined && resource !== 'events'
      ? `${resource}: you may list them only in namespace ${namespace}`
      : [];
  });
  const others = parts.flatMap(({ resource, state, message = '' }) => {
    if (state === 'loading') return `Reading ${resource}…`;
    return state === 'absent' ? `${resource}: ${message}` : [];
  });
  if (lines.length + others.length === 0) return null;
  return (
    <section aria-label="What is not shown" class="parts">
      {others.map((line) => (
        <p key={line}>{line}</p>
      ))}
      {lines.length > 0 && (
        <details>
          <summary>{`You may not read all of the cluster: ${lines.length} of ${parts.length} kinds of objects are missing here, or only partly shown`}</summary>
          <ul>
            {lines.map((line) => (
              <li key={line}>{line}</li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}
