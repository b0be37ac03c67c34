import type { VNode } from 'preact';
import type { Health, TraceNode } from '../../trace/tree.js';

const WORDS: Readonly<Record<Health, string>> = {
  ok: 'OK',
  progress: 'in progress',
  unknown: 'unknown',
  warning: 'warning',
  wrong: 'wrong',
};

/** The objects of a VM, each with its state, what is wrong and what to do. */
export function Story({ nodes }: { nodes: readonly TraceNode[] }): VNode | null {
  if (nodes.length === 0) return null;
  return (
    <ul class="story">
      {nodes.map(({ kind, name, state, health, findings, children }) => (
        <li key={`${kind} ${name}`}>
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
