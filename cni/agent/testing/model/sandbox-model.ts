import { NETWORK_STATUS_ANNOTATION } from '../../../../api/names.js';
import { networkStatuses } from '../../../../api/pod.js';
import type { Pool } from '../../../../addressing/pool/pool.js';
import type { KnownSandboxes } from '../../sandboxes.js';
import type { LeaseCluster } from './lease-api.js';

/** An interface of a pod's sandbox. */
export interface ModelInterface {
  readonly pod: ModelPod;
  readonly container: string;
  readonly name: string;
  /** Whether an ADD or DEL is under way: runtimes and the agent run one at a time. */
  isBusy: boolean;
  /** The addresses of the last ADD. */
  grant: readonly string[] | undefined;
  /** Whether the last successful request was a DEL. */
  isDeleted: boolean;
  /** Aborts the ADD or DEL under way. */
  abort: AbortController;
}

export interface ModelPod {
  readonly name: string;
  readonly node: number;
  /** The requested MAC address, which several pods share. */
  readonly mac: string | undefined;
  readonly pool: Pool;
  isAlive: boolean;
  /** ID of its current sandbox. */
  container: string;
}

/** The sandboxes of a node, by container ID, as far as they are recorded. */
export class SandboxModel implements KnownSandboxes {
  readonly existing = new Set<string>();
  readonly ended = new Set<string>();

  /** Starts a sandbox. In turns, the earlier one ends or exists for some time. The record of every fifth one fails. */
  replace(before: string, after: string, count: number): void {
    if (count % 2 === 0) this.end(before);
    if (count % 5 !== 0) this.existing.add(after);
  }

  end(container: string): void {
    if (this.existing.delete(container)) this.ended.add(container);
  }
}

/** Writes into a pod what Multus reports after an ADD. */
export function reportAttachment(
  cluster: LeaseCluster,
  pod: string,
  attached: { interface: string; ips: readonly string[] },
): void {
  const object = cluster.pods.get(`apps/${pod}`);
  if (object === undefined) return;
  const others = networkStatuses(object).filter((each) => each.interface !== attached.interface);
  const annotations = { [NETWORK_STATUS_ANNOTATION]: JSON.stringify([...others, { name: 'apps/blue', ...attached }]) };
  cluster.setPod({ ...object, metadata: { ...object.metadata, annotations } });
}

/** Whether the interface belongs to the current sandbox of a running pod. */
export function isCurrent({ pod, container }: ModelInterface): boolean {
  return pod.isAlive && pod.container === container;
}

export function nameOf({ pod, container, name }: ModelInterface): string {
  return `${name} of ${pod.name} in ${container}`;
}

export function choose<T>(all: readonly T[], pick: number, isPossible: (one: T) => boolean): T | undefined {
  const among = all.filter(isPossible);
  return among[pick % Math.max(among.length, 1)];
}
