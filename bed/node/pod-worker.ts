import { objectKey } from '../../api/meta.js';
import { backoffDelay } from '../../kube/retry.js';
import type { Client } from '../../kube/client.js';
import type { Clock, Random } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import type { SandboxNetworks } from './sandbox-networks.js';
import type { PodChange, PodView } from './pod-machine.js';
import { KUBELET_PODS, type KubeletPod, uidOf } from './pod.js';
import { type MountedSecrets, mountSecrets } from './pod-volumes.js';
import { reportStartFailure } from './start-failure.js';

/** Shorter than the kubelet's, so that tests do not wait for seconds. */
const ATTACH_BACKOFF = { baseMs: 200, maxMs: 2_000 };

export interface PodWorkerOptions {
  readonly client: Client;
  readonly networks: SandboxNetworks;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

interface AttachFailures {
  count: number;
  retryAt: number;
  /** The message that was reported last. */
  reportedMessage: string;
}

/** Carries out the actions of the state machine, and keeps track of sandboxes. */
export class PodWorker {
  readonly #options: PodWorkerOptions;
  /** Failed attempts to attach networks, by UID of the pod. */
  readonly #failures = new Map<string, AttachFailures>();
  /** Pods at the time when their sandboxes were created, by UID. */
  readonly #sandboxed = new Map<string, KubeletPod>();
  /** The Secrets of pods with a sandbox, by UID. */
  readonly #mounted = new Map<string, MountedSecrets>();

  constructor(options: PodWorkerOptions) {
    this.#options = options;
  }

  /** The state of a pod's network for the state machine. */
  view(pod: KubeletPod): Pick<PodView, 'network' | 'attachAfter'> {
    return { network: this.#options.networks.stateOf(pod), attachAfter: this.#failures.get(uidOf(pod))?.retryAt };
  }

  /** @returns undefined if the pod has never had a sandbox */
  mountedIn(pod: KubeletPod): MountedSecrets | undefined {
    return this.#mounted.get(uidOf(pod));
  }

  /** Pods that have a sandbox, even if the object is gone. */
  sandboxed(): readonly KubeletPod[] {
    return [...this.#sandboxed.values()];
  }

  /** Pods of this key that were deleted without the kubelet, for instance by force, and still have a sandbox. */
  orphans(key: string, current: KubeletPod | undefined): readonly KubeletPod[] {
    return this.sandboxed().filter((pod) => objectKey(pod) === key && pod.metadata.uid !== current?.metadata.uid);
  }

  async change(pod: KubeletPod, change: PodChange): Promise<void> {
    const { client, networks } = this.#options;
    const { namespace, name, resourceVersion, uid } = pod.metadata;
    const ref = { namespace, name };
    switch (change.kind) {
      case 'attach':
        return this.#attach(pod);
      case 'follow':
        return networks.update(pod);
      case 'detach':
        return networks.detach(pod);
      case 'report': {
        const body = { metadata: { resourceVersion }, status: change.status };
        await client.patch(KUBELET_PODS, ref, { type: 'strategic', body }, { subresource: 'status' });
        return;
      }
      case 'remove':
        await client.delete(KUBELET_PODS, ref, { uid, gracePeriodSeconds: 0 });
        this.#forget(pod);
    }
  }

  /** Removes a sandbox whose pod is gone. */
  async removeOrphan(pod: KubeletPod): Promise<void> {
    await this.#options.networks.detach(pod);
    this.#forget(pod);
  }

  async #attach(pod: KubeletPod): Promise<void> {
    const { client, networks } = this.#options;
    try {
      this.#mounted.set(uidOf(pod), await mountSecrets(client, pod));
      this.#sandboxed.set(uidOf(pod), pod); // also if it fails, so that its remains are removed with the pod
      await networks.attach(pod);
      this.#failures.delete(uidOf(pod));
    } catch (error) {
      await this.#failed(pod, error);
    }
  }

  async #failed(pod: KubeletPod, failure: unknown): Promise<void> {
    const { client, clock, random, log } = this.#options;
    const words = messageOf(failure);
    const { count = 0, reportedMessage } = this.#failures.get(uidOf(pod)) ?? {};
    const now = clock.now();
    const after = now + backoffDelay({ ...ATTACH_BACKOFF, random }, count);
    this.#failures.set(uidOf(pod), { count: count + 1, retryAt: after, reportedMessage: words });
    log.warn({ object: `pod ${objectKey(pod)}`, error: words }, 'not started');
    if (words === reportedMessage) return;
    try {
      await reportStartFailure(client, pod, failure, now);
    } catch (error) {
      this.#failures.set(uidOf(pod), { count: count + 1, retryAt: after, reportedMessage: '' }); // the API server is down; reported later
      log.warn({ error: messageOf(error) }, 'the failure could not be reported');
    }
  }

  #forget(pod: KubeletPod): void {
    this.#options.networks.forget(pod);
    this.#sandboxed.delete(uidOf(pod));
    this.#mounted.delete(uidOf(pod));
    this.#failures.delete(uidOf(pod));
  }
}
