import { type ClaimOwner, claimVmNetworkOf } from '../../api/ipam-claim.js';
import { isBeingDeleted, joinKey } from '../../api/meta.js';
import { VIRTUAL_MACHINE_INSTANCE_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { ownerOfVmi } from '../../api/vm-claims.js';
import { valueOf } from '../reader.js';
import { traceClaim } from './claims.js';
import { traceLockedLeases } from './leases.js';
import { traceNetwork, tracedNetworks } from './networks.js';
import type { ObservedVmTrace, TracedVm, TracedVmi } from './observed.js';
import { traceVmi } from './pods.js';
import { unreadFindings } from './remedies.js';
import { type TraceFinding, type TraceNode, traceNode } from './tree.js';

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
    return { ...node, children: [...node.children, ...traceNetworks(observed, ownerOfVmi(instance), [instance.spec])] };
  }
  if (vm.kind === 'absent' && vmi.kind === 'absent') return undefined;
  const findings = [vm, vmi].flatMap(unreadFindings);
  return traceNode({ kind: VIRTUAL_MACHINE_KIND, name: joinKey(namespace, name), state: 'not shown', findings });
}

function traceFoundVm(observed: ObservedVmTrace, vm: TracedVm, vmi: TracedVmi | undefined): TraceNode {
  const { name, uid = '' } = vm.metadata;
  const owner: ClaimOwner = { kind: VIRTUAL_MACHINE_KIND, name, uid };
  const state = vm.status?.printableStatus ?? (vmi === undefined ? 'Stopped' : 'Running');
  return traceNode({
    kind: VIRTUAL_MACHINE_KIND,
    name: joinKey(observed.namespace, name),
    state: isBeingDeleted(vm) ? 'being deleted' : state,
    children: [
      ...(vmi === undefined ? unreadVmi(observed) : [traceVmi(observed, vmi)]),
      ...traceNetworks(observed, owner, [vm.spec?.template?.spec, vmi?.spec]),
    ],
  });
}

function unreadVmi({ namespace, name, vmi }: ObservedVmTrace): TraceNode[] {
  const findings = unreadFindings(vmi);
  if (findings.length === 0) return [];
  const key = joinKey(namespace, name);
  return [traceNode({ kind: VIRTUAL_MACHINE_INSTANCE_KIND, name: key, state: 'not shown', findings })];
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
  const findings: TraceFinding[] = [{ health: 'unknown', message: 'a VM that runs has at most 64 networks' }];
  return traceNode({ kind: 'Network', name: '', state: `${count} more, not shown`, findings });
}
