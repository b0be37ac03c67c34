import { isTerminal } from '../../../api/pod.js';
import { isBeingDeleted } from '../../../api/meta.js';
import { NETWORK_STATUS_ANNOTATION } from '../../../api/names.js';
import type { VmSwitches } from '../switches.js';
import { isNetworkStatusStale, networkStatus } from './network-status.js';
import type { KubeletPod, PodStatus } from './pod.js';
import { endedStatus, isReady, readinessStatus, runningStatus } from './pod-status.js';
import { go, wait, type Go, type Step } from './step.js';
import { hasEnded, hasGuest, migrationInFlight, type Vmi } from './virtual-machine-instance.js';

/** What the kubelet does to a pod. */
export type PodChange =
  | { readonly kind: 'annotate'; readonly annotations: Record<string, string> }
  | { readonly kind: 'report'; readonly status: PodStatus }
  | { readonly kind: 'remove' };

/** What the kubelet and virt-handler know besides the pod itself. */
export interface PodView {
  /** The VMI that controls the pod; undefined for an ordinary pod, and once the VMI is gone. */
  readonly vmi: Vmi | undefined;
  readonly switches: VmSwitches;
  readonly isNodeUp: (node: string) => boolean;
  readonly now: number;
}

/**
 * One step of the kubelet, Multus and the dynamic networks controller with one pod:
 *
 *     bound → network-status written (CNI ADD) → Running → Ready
 *     Running                                    network-status follows the networks annotation; the guest ends → Succeeded
 *     deleted → the guest ends → Succeeded → removed
 */
export function stepPod(pod: KubeletPod, view: PodView): Step<PodChange> {
  const node = pod.spec?.nodeName;
  if (!node) return wait('the scheduler');
  if (!view.isNodeUp(node)) return wait(`node ${node} to come back`);
  if (isBeingDeleted(pod)) return stepTermination(pod, view);
  if (isTerminal(pod)) return wait('its removal');
  return pod.status?.phase === 'Running' ? stepRunning(pod, view) : stepStart(pod, view);
}

function stepTermination(pod: KubeletPod, view: PodView): Step<PodChange> {
  if (isTerminal(pod) || pod.status?.phase === 'Pending') return go({ kind: 'remove' }, 'terminated: removed');
  if (view.switches.holdTermination) return wait('termination, which is held');
  if (holdsGuest(pod, view.vmi)) return wait('virt-handler to report the end of the guest');
  return report(endedStatus(pod, 'Succeeded', view.now), 'terminated → Succeeded');
}

function stepStart(pod: KubeletPod, view: PodView): Step<PodChange> {
  if (view.switches.refuseNetworks) return wait('CNI ADD, which is refused');
  const wanted = networkStatus(pod);
  if (pod.metadata.annotations?.[NETWORK_STATUS_ANNOTATION] !== wanted) return annotate(wanted, 'networks attached');
  return report(runningStatus(pod, view.now), 'started → Running');
}

function stepRunning(pod: KubeletPod, view: PodView): Step<PodChange> {
  const end = endOfGuest(pod, view.vmi);
  if (end) return report(endedStatus(pod, end.phase, view.now), `${end.reason} → ${end.phase}`);
  const ready = isReady(pod);
  const reported = pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
  if (ready !== reported) return report(readinessStatus(ready, view.now), ready ? 'ready' : 'not ready');
  if (view.switches.dynamicNetworks && isNetworkStatusStale(pod))
    return annotate(networkStatus(pod), 'networks changed');
  return wait('something to do');
}

/** The guest of the VMI lives in this pod, and not only as the target of a migration. */
function holdsGuest(pod: KubeletPod, vmi: Vmi | undefined): boolean {
  if (!vmi || !hasGuest(vmi)) return false;
  return vmi.status?.nodeName === pod.spec?.nodeName && migrationInFlight(vmi)?.targetPod !== pod.metadata.name;
}

/** virt-launcher exits once its guest has ended, moved away, or failed to arrive. */
function endOfGuest(
  pod: KubeletPod,
  vmi: Vmi | undefined,
): { phase: 'Succeeded' | 'Failed'; reason: string } | undefined {
  if (!vmi) return undefined;
  if (hasEnded(vmi)) return { phase: 'Succeeded', reason: 'the guest ended' };
  const { nodeName, migrationState = {} } = vmi.status ?? {};
  const { completed, failed, sourcePod, targetPod } = migrationState;
  if (!completed || nodeName === pod.spec?.nodeName || pod.metadata.name !== (failed ? targetPod : sourcePod))
    return undefined;
  return failed
    ? { phase: 'Failed', reason: 'migration failed' }
    : { phase: 'Succeeded', reason: 'the guest moved away' };
}

function annotate(status: string, reason: string): Go<PodChange> {
  return go({ kind: 'annotate', annotations: { [NETWORK_STATUS_ANNOTATION]: status } }, reason);
}

function report(status: PodStatus, reason: string): Go<PodChange> {
  return go({ kind: 'report', status }, reason);
}
