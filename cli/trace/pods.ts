import type { VirtualMachineInstance } from '../../api/kubevirt.js';
import { asRecord, asString, recordsIn } from '../../api/json.js';
import { byAge, isBeingDeleted, joinKey } from '../../api/meta.js';
import { MIGRATION_LABEL } from '../../api/names.js';
import { type Pod, isTerminal } from '../../api/pod.js';
import { isReady } from '../installation.js';
import { valueOf } from '../reader.js';
import { guardFindings, launcherRefusalEvent, podStartEvent } from './events.js';
import type { ObservedVmTrace } from './observed.js';
import { type TraceFinding, type TraceNode, traceNode, unreadFindings, unreadNodes } from './tree.js';

/** A VM has one launcher, and a second one while it migrates. */
const MAX_PODS = 8;
const SYNCHRONIZED = 'Synchronized';

/** Tells the story of a VMI and its launchers. */
export function traceVmi(observed: ObservedVmTrace, vmi: VirtualMachineInstance): TraceNode {
  const { phase = 'Pending', nodeName } = vmi.status ?? {};
  const launchers = launchersOf(observed, vmi);
  const live = launchers.filter((pod) => !isTerminal(pod));
  const isMissing = live.length === 0 && !isBeingDeleted(vmi);
  const state = isBeingDeleted(vmi) ? 'being deleted' : nodeName ? `${phase} on ${nodeName}` : phase;
  return traceNode({
    kind: 'VirtualMachineInstance',
    name: joinKey(observed.namespace, vmi.metadata.name),
    state: live.length > 1 ? `${state}, migrating` : state,
    findings: isMissing ? missingLauncher(observed, vmi, launchers) : guardFindings(observed),
    children: [
      ...live.slice(0, MAX_PODS).map((pod) => tracePod(observed, pod, live.length > 1)),
      ...unreadNodes('Pod', observed.namespace, observed.pods),
    ],
  });
}

/** Returns the launchers of this VMI, by UID, the oldest first. */
function launchersOf({ pods }: ObservedVmTrace, vmi: VirtualMachineInstance): Pod[] {
  return valueOf(pods, [])
    .filter(({ metadata }) => metadata.ownerReferences?.some(({ uid }) => uid === vmi.metadata.uid))
    .toSorted(byAge);
}

function missingLauncher(
  observed: ObservedVmTrace,
  vmi: VirtualMachineInstance,
  ended: readonly Pod[],
): TraceFinding[] {
  if (observed.pods.kind !== 'found') return [];
  const condition = vmi.status?.conditions?.find(({ type }) => type === SYNCHRONIZED);
  if (condition?.status === 'False') {
    // KubeVirt may leave the message out
    const why = condition.message || 'see the events and the log of virt-controller';
    return [{ health: 'wrong', reason: condition.reason ?? SYNCHRONIZED, message: `no launcher pod: ${why}` }];
  }
  const refusal = launcherRefusalEvent(observed);
  if (refusal !== undefined) return [refusal];
  if (ended.length > 0) return [{ health: 'progress', message: 'its launcher pod has ended' }];
  return [{ health: 'progress', message: 'it has no launcher pod yet: KubeVirt creates one' }];
}

function tracePod(observed: ObservedVmTrace, pod: Pod, isMigration: boolean): TraceNode {
  const { phase = 'Pending' } = pod.status ?? {};
  const nodeName = pod.spec?.nodeName ?? '';
  const role = pod.metadata.labels?.[MIGRATION_LABEL] === undefined ? 'migration source' : 'migration target';
  const states = [nodeName === '' ? phase : `${phase} on ${nodeName}`, ...(isMigration ? [role] : [])];
  if (isBeingDeleted(pod)) states.push('being deleted');
  return traceNode({
    kind: 'Pod',
    name: joinKey(observed.namespace, pod.metadata.name),
    state: states.join(', '),
    findings: phase === 'Pending' ? pendingPod(observed, pod) : [],
    children: nodeName === '' ? [] : [traceNodeOfPod(observed, nodeName, phase)],
  });
}

function pendingPod(observed: ObservedVmTrace, pod: Pod): TraceFinding[] {
  return [podStartEvent(observed, pod.metadata.name) ?? { health: 'progress', message: 'it is starting' }];
}

/** Tells whether the agent of a node serves pods: those that run need no agent. */
function traceNodeOfPod({ agents }: ObservedVmTrace, name: string, phase: string): TraceNode {
  const read = agents.get(name);
  const node = (state: string, findings: TraceFinding[] = []) => traceNode({ kind: 'Node', name, state, findings });
  if (read === undefined) return node('not served by Holdfast');
  if (read.kind !== 'found') return node('agent not shown', unreadFindings(read));
  const current = read.value.filter((pod) => !isTerminal(pod) && !isBeingDeleted(pod));
  if (current.some(isReady)) return node('agent ready');
  const health = phase === 'Pending' ? 'wrong' : 'warning';
  const effect = phase === 'Pending' ? 'this pod waits' : 'pods that run are not affected, but none can start here';
  const [agent] = current;
  if (agent === undefined) {
    const message = `no agent of Holdfast runs on node ${name}: ${effect}`;
    return node('no agent', [{ health, message, remedy: 'see kubectl -n holdfast-agents get pods -o wide' }]);
  }
  const message = `agent ${agent.metadata.name} is not ready${whyNotReady(agent)}: ${effect}`;
  const remedy = `see kubectl -n holdfast-agents logs ${agent.metadata.name} and its /readyz`;
  return node('agent not ready', [{ health, message, remedy }]);
}

function whyNotReady(agent: Pod): string {
  const { initContainerStatuses, containerStatuses } = asRecord(agent.status);
  for (const status of [...recordsIn(initContainerStatuses), ...recordsIn(containerStatuses)]) {
    const { reason, message } = asRecord(asRecord(status.state).waiting);
    const text = [asString(reason), asString(message)].filter((part) => part !== '').join(': ');
    if (text !== '') return ` (${text})`;
  }
  const ready = agent.status?.conditions?.find(({ type }) => type === 'Ready');
  const { reason = '', message = '' } = asRecord(ready);
  const text = asString(message) || asString(reason);
  return text === '' ? '' : ` (${text})`;
}
