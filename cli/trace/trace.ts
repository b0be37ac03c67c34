import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import { type ClaimOwner, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { ownerOfVmi } from '../../api/vm-claims.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { VIRTUAL_MACHINES } from '../../kube/resources.js';
import { addClusterFlags } from '../cluster-flags.js';
import { CommandError } from '../exit-code.js';
import { similarNames } from '../find-pool.js';
import type { Output } from '../output.js';
import { readList, valueOf } from '../reader.js';
import type { Line, Span } from '../terminal.js';
import { traceClaim, traceLockedLeases } from './claims.js';
import { unleasedFindings } from './events.js';
import { traceNetwork, tracedNetworks, unknownNetworkFindings } from './networks.js';
import { observeVmTrace } from './observe.js';
import type { ObservedVmTrace } from './observed.js';
import { traceVmi } from './pods.js';
import { type TraceNode, healthOfTree, traceNode, unreadFindings, unreadNodes } from './tree.js';

interface TraceDeps {
  readonly client: Pick<Client, 'get' | 'list' | 'listAs'>;
  readonly clock: Pick<Clock, 'wall'>;
  /** Whether the output may contain box-drawing characters. */
  readonly isUnicode: boolean;
  /** Of printed commands. */
  readonly clusterFlags: string;
}

/**
 * Reads and formats the story of a VM.
 * @returns the output, and whether something is wrong
 * @throws {CommandError} if there is no such VM
 */
export async function traceVirtualMachine(
  vm: { namespace: string; name: string },
  { client, clock, isUnicode, clusterFlags }: TraceDeps,
): Promise<{ output: Output; isWrong: boolean }> {
  const tree = addClusterFlags(traceVm(await observeVmTrace(vm, client, clock.wall())), clusterFlags);
  if (tree === undefined) throw new CommandError(await describeMissing(vm, client));
  const health = healthOfTree(tree);
  return { output: { data: { health, tree }, lines: () => treeLines(tree, isUnicode) }, isWrong: health === 'wrong' };
}

/** Suggests names of the namespace, and the same name in other namespaces if the user may list them. */
async function describeMissing(vm: { namespace: string; name: string }, client: Pick<Client, 'list'>): Promise<string> {
  const { namespace, name } = vm;
  // suggestions are a service
  const list = async (options: { namespace?: string; fieldSelector?: string }) =>
    valueOf(await readList(client, VIRTUAL_MACHINES, { ...options, metadataOnly: true }), []).map(
      ({ metadata }) => metadata,
    );
  const [here, everywhere] = await Promise.all([list({ namespace }), list({ fieldSelector: `metadata.name=${name}` })]);
  const elsewhere = everywhere.map((each) => `-n ${each.namespace ?? ''}`);
  const suggestions = [...similarNames(name, here), ...elsewhere].slice(0, 5);
  const advice =
    suggestions.length === 0
      ? 'run kubectl get vm -n NAMESPACE to list all'
      : `did you mean ${suggestions.join(', ')}?`;
  return `VirtualMachine ${joinKey(namespace, name)} does not exist: ${advice}`;
}

/** The characters of a tree on terminals. */
const UNICODE = {
  ...{ branch: '├─ ', lastBranch: '└─ ', trunk: '│  ', gap: '   ' },
  marks: { ok: '✓', progress: '…', unknown: '?', warning: '!', wrong: '✗' },
};
const ASCII: typeof UNICODE = {
  ...{ branch: '|- ', lastBranch: '`- ', trunk: '|  ', gap: '   ' },
  marks: { ok: '[ok]', progress: '[..]', unknown: '[??]', warning: '[!!]', wrong: '[XX]' },
};
const STYLES = { ok: 'green', progress: 'cyan', unknown: 'dim', warning: 'yellow', wrong: 'red' } as const;

/** Formats a tree for people: a line for each object, and below it what is wrong and what to do. */
function treeLines(root: TraceNode, isUnicode: boolean): Line[] {
  return nodeLines(root, isUnicode ? UNICODE : ASCII, { first: '', rest: '' });
}

function nodeLines(node: TraceNode, drawing: typeof UNICODE, { first, rest }: { first: string; rest: string }): Line[] {
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

const MAX_OTHER_CLAIMS = 16;

/**
 * Tells the story of a VM as a tree: VM → VMI → launchers → node with its agent, and VM → networks → claims → leases and pools. Each part has its
 * state, what is wrong with it and what to do. Parts that the user may not read say so. Pure; the work is bounded for objects that tenants write.
 * @returns undefined if there is neither a VM nor a VMI of this name
 */
export function traceVm(observed: ObservedVmTrace): TraceNode | undefined {
  const { namespace, name, vm, vmi } = observed;
  const instance = valueOf(vmi, undefined);
  if (vm.kind === 'found') return traceFoundVm(observed, vm.value, instance);
  if (instance !== undefined) {
    // a VMI without a VM, or one whose VM the user may not read
    const node = traceVmi(observed, instance);
    const children = [...node.children, ...traceNetworks(observed, ownerOfVmi(instance), [instance.spec])];
    return traceNode({ ...node, children });
  }
  if (vm.kind === 'absent' && vmi.kind === 'absent') return undefined;
  const findings = [vm, vmi].flatMap(unreadFindings);
  return traceNode({ kind: VIRTUAL_MACHINE_KIND, name: joinKey(namespace, name), state: 'not shown', findings });
}

function traceFoundVm(
  observed: ObservedVmTrace,
  vm: VirtualMachine,
  vmi: VirtualMachineInstance | undefined,
): TraceNode {
  const { name, uid = '' } = vm.metadata;
  const key = joinKey(observed.namespace, name);
  const owner: ClaimOwner = { kind: VIRTUAL_MACHINE_KIND, name, uid };
  const state = vm.status?.printableStatus ?? (vmi === undefined ? 'Stopped' : 'Running');
  return traceNode({
    kind: VIRTUAL_MACHINE_KIND,
    name: key,
    state: isBeingDeleted(vm) ? 'being deleted' : state,
    findings: [...unknownNetworkFindings(observed, vm.spec?.template?.spec), ...unleasedFindings(observed)],
    children: [
      ...(vmi === undefined
        ? unreadNodes(VIRTUAL_MACHINE_INSTANCE_KIND, key, observed.vmi)
        : [traceVmi(observed, vmi)]),
      ...traceNetworks(observed, owner, [vm.spec?.template?.spec, vmi?.spec]),
    ],
  });
}

function traceNetworks(
  observed: ObservedVmTrace,
  owner: ClaimOwner,
  specs: Parameters<typeof tracedNetworks>[0],
): TraceNode[] {
  const { shown, total } = tracedNetworks(specs, observed.namespace);
  const nodes = shown.flatMap((network) => traceNetwork(observed, owner, network) ?? []);
  const names = new Set(shown.map(({ name }) => name));
  const others = valueOf(observed.claims, []).filter((claim) => {
    const vmNetwork = claimVmNetworkOf(claim);
    return total === shown.length && vmNetwork !== undefined && !names.has(vmNetwork);
  });
  return [
    ...nodes,
    ...others.slice(0, MAX_OTHER_CLAIMS).map((claim) => traceClaim(observed, claim, undefined)),
    ...(total > shown.length ? [restNode(total - shown.length)] : []),
    ...traceLockedLeases(observed),
  ];
}

function restNode(count: number): TraceNode {
  const finding = { health: 'unknown', message: 'a VM that runs has at most 64 networks' } as const;
  return traceNode({ kind: 'Network', name: '', state: `${count} more, not shown`, findings: [finding] });
}
