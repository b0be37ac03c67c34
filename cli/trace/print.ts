import type { Line, Span, Style } from '../terminal.js';
import type { Health, TraceNode } from './tree.js';

/** The characters of a tree: those of Unicode for terminals, ASCII otherwise. */
interface Drawing {
  readonly branch: string;
  readonly lastBranch: string;
  readonly trunk: string;
  readonly gap: string;
  readonly marks: Readonly<Record<Health, string>>;
}

const UNICODE: Drawing = {
  ...{ branch: '├─ ', lastBranch: '└─ ', trunk: '│  ', gap: '   ' },
  marks: { ok: '✓', progress: '…', unknown: '?', warning: '!', wrong: '✗' },
};
const ASCII: Drawing = {
  ...{ branch: '|- ', lastBranch: '`- ', trunk: '|  ', gap: '   ' },
  marks: { ok: '[ok]', progress: '[..]', unknown: '[??]', warning: '[!!]', wrong: '[XX]' },
};
const STYLES: Readonly<Record<Health, Style>> = {
  ok: 'green',
  progress: 'cyan',
  unknown: 'dim',
  warning: 'yellow',
  wrong: 'red',
};

/** Formats a tree for people: a line for each object, and below it what is wrong and what to do. */
export function treeLines(root: TraceNode, isUnicode: boolean): Line[] {
  return nodeLines(root, isUnicode ? UNICODE : ASCII, { first: '', rest: '' });
}

function nodeLines(node: TraceNode, drawing: Drawing, { first, rest }: { first: string; rest: string }): Line[] {
  const { kind, name, state, health, findings, children } = node;
  const style = STYLES[health];
  const head: Span[] = [first, { text: drawing.marks[health], style }, ` ${[kind, name].join(' ').trim()}: ${state}`];
  const below = `${rest}${children.length > 0 ? drawing.trunk : drawing.gap}  `;
  const notes = findings.flatMap((finding): Line[] => {
    const { reason, message, remedy } = finding;
    const text = reason === undefined ? message : `${reason}: ${message}`;
    return [
      [below, { text, style: STYLES[finding.health] }],
      ...(remedy === undefined ? [] : [`${below}What to do: ${remedy}`]),
    ];
  });
  const inner = children.flatMap((child, index) => {
    const isLast = index === children.length - 1;
    return nodeLines(child, drawing, {
      first: `${rest}${isLast ? drawing.lastBranch : drawing.branch}`,
      rest: `${rest}${isLast ? drawing.gap : drawing.trunk}`,
    });
  });
  return [head, ...notes, ...inner];
}
