import { isTerminal } from '../../api/pod.js';
import { isBeingDeleted } from '../../api/meta.js';
import type { VmSwitches } from '../switches.js';
import { isNetworkStatusStale } from './vmi/network-status.js';
import type { SandboxState } from './sandbox-networks.js';
import type { KubeletPod, PodStatus } from './pod.js';
import { addressStatus, endedStatus, isReady, isReportedReady, readinessStatus, runningStatus } from './pod-status.js';
import { change, waitFor, type ChangeStep, type Step } from './step.js';
import { hasEnded, hasGuest, migrationInFlight, type Vmi } from './vmi/virtual-machine-instance.js';

/** An action of the kubelet for a pod. */
export type PodChange =
  /** Creates a sandbox and calls CNI ADD. */
  | { readonly kind: 'attach' }
  /** Adapts the sandbox to the networks annotation. */
  | { readonly kind: 'follow' }
  /** Calls CNI DEL and removes the sandbox. */
  | { readonly kind: 'detach' }
  | { readonly kind: 'report'; readonly status: PodStatus }
  | { readonly kind: 'remove' };

interface PodEnd {
  readonly phase: 'Succeeded' | 'Failed';
  readonly reason: string;
}

/** The knowledge of kubelet and virt-handler besides the pod itself. */
export interface PodView {
  /** The VMI that controls the pod; undefined for an ordinary pod, and after the VMI is gone. */
  readonly vmi: Vmi | undefined;
  readonly switches: VmSwitches;
  readonly isNodeUp: (node: string) => boolean;
  readonly now: number;
  readonly network: SandboxState;
  /** The time before which no sandbox is retried. */
  readonly attachAfter?: number | undefined;
}

/**
 * One step of the kubelet, Multus and the dynamic networks controller with one pod:
 *
 *     bound → sandbox and CNI ADD → Running → Ready
 *     Running                                 networks are adapted to the annotation; a lost sandbox is replaced
 *     the guest ends, or deleted and the containers end → CNI DEL → Succeeded
 *     deleted and ended → removed
 *
 * CNI DEL comes before the last phase, as kubelets have it since https://github.com/kubernetes/kubernetes/pull/108366.
 */
export function stepPod(pod: KubeletPod, view: PodView): Step<PodChange> {
  const node = pod.spec?.nodeName;
  if (!node) return waitFor('the scheduler');
  if (!view.isNodeUp(node)) return waitFor(`node ${node} to come back`);
  if (isBeingDeleted(pod)) return stepTermination(pod, view);
  if (isTerminal(pod)) return stepDetach(view, 'ended') ?? waitFor('its removal');
  return pod.status?.phase === 'Running' ? stepRunning(pod, view) : stepStart(pod, view);
}

function stepTermination(pod: KubeletPod, view: PodView): Step<PodChange> {
  if (isTerminal(pod) || pod.status?.phase === 'Pending') {
    return stepDetach(view, 'terminated') ?? change({ kind: 'remove' }, 'terminated: removed');
  }
  if (view.switches.holdTermination) return waitFor('termination, which is held');
  if (holdsGuest(pod, view.vmi)) return waitFor('virt-handler to report the end of the guest');
  return stepEnd(pod, view, { phase: 'Succeeded', reason: 'terminated' });
}

function stepStart(pod: KubeletPod, view: PodView): Step<PodChange> {
  const { network, now } = view;
  if (network.state === 'up') return report(runningStatus(pod, network.ips, now), 'started → Running');
  return stepAttach(view);
}

function stepAttach({ switches, attachAfter = 0, now }: PodView): Step<PodChange> {
  if (switches.holdNetworks) return waitFor('CNI ADD, which is held');
  if (attachAfter > now) return waitFor('the next CNI ADD', attachAfter - now);
  return change({ kind: 'attach' }, 'networks attached');
}

function stepRunning(pod: KubeletPod, view: PodView): Step<PodChange> {
  const { network, now } = view;
  const end = endOfGuest(pod, view.vmi);
  if (end) return stepEnd(pod, view, end);
  if (network.state === 'ended') return stepEnd(pod, view, { phase: 'Succeeded', reason: 'ended' });
  if (network.state === 'none') return stepAttach(view);
  if (hasOtherAddress(pod, network.ips)) return report(addressStatus(network.ips), 'the pod has another address');
  const ready = isReady(pod);
  if (ready !== isReportedReady(pod)) return report(readinessStatus(ready, now), ready ? 'ready' : 'not ready');
  if (view.switches.dynamicNetworks && isNetworkStatusStale(pod)) return change({ kind: 'follow' }, 'networks changed');
  return waitFor('something to do');
}

function hasOtherAddress({ status = {} }: KubeletPod, [ip]: readonly string[]): boolean {
  return status.podIP !== undefined && status.podIP !== ip;
}

/** The containers have ended. */
function stepEnd(pod: KubeletPod, view: PodView, { phase, reason }: PodEnd): Step<PodChange> {
  return stepDetach(view, reason) ?? report(endedStatus(pod, phase, view.now), `${reason} → ${phase}`);
}

function stepDetach({ network, switches }: PodView, reason: string): Step<PodChange> | undefined {
  if (network.state !== 'up') return undefined;
  if (switches.delayNetworkEnd) return waitFor('CNI DEL, which is delayed');
  return change({ kind: 'detach' }, `${reason}: networks detached`);
}

/** Whether the guest of the VMI runs in this pod, which is then not merely the target of a migration. */
function holdsGuest(pod: KubeletPod, vmi: Vmi | undefined): boolean {
  if (!vmi || !hasGuest(vmi)) return false;
  return vmi.status?.nodeName === pod.spec?.nodeName && migrationInFlight(vmi)?.targetPod !== pod.metadata.name;
}

/** The result of the pod if its guest has ended, migrated away, or failed to arrive. Then virt-launcher exits. */
function endOfGuest(pod: KubeletPod, vmi: Vmi | undefined): PodEnd | undefined {
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

function report(status: PodStatus, reason: string): ChangeStep<PodChange> {
  return change({ kind: 'report', status }, reason);
}
