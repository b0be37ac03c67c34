import { joinKey } from '../../api/meta.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { StatusError } from '../../kube/errors.js';
import { VIRTUAL_MACHINES } from '../../kube/resources.js';
import { CommandError } from '../command-error.js';
import type { Output } from '../output.js';
import { similarNames } from '../similar-names.js';
import type { Line, Span, Style } from '../terminal.js';
import { observeVmTrace } from './observe.js';
import { type Health, type TraceNode, healthOfTree } from './tree.js';
import { traceVm } from './trace-vm.js';

export interface TraceDeps {
  readonly client: Pick<Client, 'get' | 'list'>;
  readonly clock: Pick<Clock, 'wall'>;
  /** Whether the output may contain box-drawing characters. */
  readonly isUnicode: boolean;
}

/**
 * Reads and formats the story of a VM.
 * @returns the output, and whether something is wrong
 * @throws {CommandError} if there is no such VM
 */
export async function traceVirtualMachine(
  vm: { namespace: string; name: string },
  { client, clock, isUnicode }: TraceDeps,
): Promise<{ output: Output; isWrong: boolean }> {
  const tree = traceVm(await observeVmTrace(vm, client, clock.wall()));
  if (tree === undefined) throw new CommandError(await describeMissing(vm, client));
  const health = healthOfTree(tree);
  return { output: { data: { health, tree }, lines: () => treeLines(tree, isUnicode) }, isWrong: health === 'wrong' };
}

/** Suggests names of the namespace, and the same name in other namespaces if the user may list them. */
async function describeMissing(vm: { namespace: string; name: string }, client: Pick<Client, 'list'>): Promise<string> {
  const { namespace, name } = vm;
  const [here, everywhere] = await Promise.all([
    listKeys(client, { namespace }),
    listKeys(client, { fieldSelector: `metadata.name=${name}` }),
  ]);
  const similar = similarNames(name, here);
  const elsewhere = everywhere.map((each) => `-n ${each.namespace}`);
  const suggestions = [...similar, ...elsewhere].slice(0, 5);
  const advice =
    suggestions.length === 0
      ? 'run kubectl get vm -n NAMESPACE to list all'
      : `did you mean ${suggestions.join(', ')}?`;
  return `VirtualMachine ${joinKey(namespace, name)} does not exist: ${advice}`;
}

async function listKeys(
  client: Pick<Client, 'list'>,
  options: { namespace?: string; fieldSelector?: string },
): Promise<{ namespace: string; name: string }[]> {
  try {
    const { items } = await client.list(VIRTUAL_MACHINES, { ...options, metadataOnly: true });
    return items.map(({ metadata: { namespace = '', name } }) => ({ namespace, name }));
  } catch (error) {
    // suggestions are a service
    if (error instanceof StatusError) return [];
    throw error;
  }
}

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
function treeLines(root: TraceNode, isUnicode: boolean): Line[] {
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
