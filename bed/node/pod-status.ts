import { createHash } from 'node:crypto';
import { nodeAddress } from './node-object.js';
import type { Container, ContainerStatus, KubeletPod, PodCondition, PodStatus } from './pod.js';
import { timestamp } from './step.js';

/**
 * The status of a pod whose containers run. It is Ready unless it has `readinessGates`.
 * @param ips on the pod network
 */
export function runningStatus(pod: KubeletPod, ips: readonly string[], now: number): PodStatus {
  const time = timestamp(now);
  const running = { ready: true, started: true, state: { running: { startedAt: time } } };
  const terminated = { exitCode: 0, reason: 'Completed', startedAt: time, finishedAt: time };
  const completed = { ready: true, started: false, state: { terminated } };
  const met = ['PodReadyToStartContainers', 'Initialized', 'ContainersReady'];
  return {
    phase: 'Running',
    startTime: time,
    hostIP: nodeAddress(pod.spec?.nodeName ?? ''),
    ...addressStatus(ips),
    conditions: [...met.map((type) => condition(type, true, now)), readyCondition(areGatesOpen(pod), now)],
    containerStatuses: (pod.spec?.containers ?? []).map((container) => containerStatus(pod, container, running)),
    initContainerStatuses: (pod.spec?.initContainers ?? []).map((container) =>
      containerStatus(pod, container, container.restartPolicy === 'Always' ? running : completed),
    ),
  };
}

/** The addresses of the pod on the pod network. */
export function addressStatus(ips: readonly string[]): PodStatus {
  const [podIP] = ips;
  return podIP === undefined ? {} : { podIP, podIPs: [...ips.map((ip) => ({ ip })), { $patch: 'replace' }] };
}

/** All containers have ended. */
export function endedStatus(pod: KubeletPod, phase: 'Succeeded' | 'Failed', now: number): PodStatus {
  const time = timestamp(now);
  const exitCode = phase === 'Failed' ? 1 : 0;
  const reason = phase === 'Failed' ? 'Error' : 'Completed';
  const terminated = { exitCode, reason, startedAt: pod.status?.startTime ?? time, finishedAt: time };
  const ended = { ready: false, started: false, state: { terminated } };
  const unmet = ['Ready', 'ContainersReady'].map((type) => ({
    ...condition(type, false, now),
    reason: 'PodCompleted',
  }));
  return {
    phase,
    conditions: unmet,
    containerStatuses: (pod.spec?.containers ?? []).map((container) => containerStatus(pod, container, ended)),
  };
}

/** A status with only the Ready condition, for a running pod. */
export function readinessStatus(ready: boolean, now: number): PodStatus {
  return { conditions: [readyCondition(ready, now)] };
}

/** Whether a running pod is Ready: its containers are, and all its readiness gates are open. */
export function isReady(pod: KubeletPod): boolean {
  return pod.status?.phase === 'Running' && areGatesOpen(pod);
}

export function isReportedReady(pod: KubeletPod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

function areGatesOpen(pod: KubeletPod): boolean {
  const open = new Set(pod.status?.conditions?.filter(({ status }) => status === 'True').map(({ type }) => type));
  return (pod.spec?.readinessGates ?? []).every((gate) => open.has(gate.conditionType));
}

function readyCondition(ready: boolean, now: number): PodCondition {
  return { ...condition('Ready', ready, now), reason: ready ? '' : 'ReadinessGatesNotReady' };
}

function condition(type: string, isMet: boolean, now: number): PodCondition {
  return { type, status: isMet ? 'True' : 'False', lastTransitionTime: timestamp(now) };
}

function containerStatus(pod: KubeletPod, container: Container, state: object): ContainerStatus {
  const image = container.image ?? '';
  return {
    name: container.name,
    image,
    imageID: imageId(image),
    containerID: `simulated://${pod.metadata.uid ?? ''}/${container.name}`,
    restartCount: 0,
    ...state,
  };
}

/** Names the image by digest, because virt-controller creates the target of a migration with the same image as the source. */
function imageId(image: string): string {
  const name = image.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  return `${name}@sha256:${createHash('sha256').update(image).digest('hex')}`;
}
