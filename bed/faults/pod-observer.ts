import type { AddressLease } from '../../api/address-lease.js';
import { isBeingDeleted } from '../../api/meta.js';
import { isTerminal, type Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import type { Reflector } from '../../kube/informers/reflector.js';
import { ADDRESS_LEASES, PODS } from '../../kube/resources.js';
import { watchObjects } from '../story/watched-objects.js';

/** What was observed of a pod. The order relative to leases is that of resourceVersions. */
interface PodHistory {
  readonly name: string;
  ranAt?: bigint;
  /** From then on its addresses may be released; 0 if the time is unknown. */
  endedAt?: bigint;
}

interface PodRelease {
  readonly address: string;
  readonly uid: string;
  readonly version: bigint;
}

/** Watches pods and leases, and checks that no address is released while its pod runs. */
export class PodObserver {
  readonly #pods: Reflector<Pod>;
  readonly #leases: Reflector<AddressLease>;
  readonly #lives = new Map<string, PodHistory>();
  readonly #releases = new Map<string, PodRelease>();

  constructor(client: Client, { space, namespace }: { space: string; namespace: string }) {
    this.#pods = watchObjects(client, PODS, {
      namespace,
      see: (pod) => this.#see(pod, BigInt(pod.metadata.resourceVersion ?? '0')),
      list: (pods) => this.#startAgain(pods),
      remove: ({ metadata }) => this.#ended(metadata.uid ?? '', BigInt(metadata.resourceVersion ?? '0')),
    });
    this.#leases = watchObjects(client, ADDRESS_LEASES, {
      see: (lease) => {
        if (lease.spec.addressSpace === space) this.#seeLease(lease);
      },
    });
  }

  /** The number of released addresses of pods. */
  get releases(): number {
    return this.#releases.size;
  }

  start(): void {
    this.#pods.start();
    this.#leases.start();
  }

  /** @returns violations of the invariant */
  async stop(): Promise<string[]> {
    await Promise.all([this.#pods.stop(), this.#leases.stop()]);
    return [...this.#releases.values()].flatMap(({ address, uid, version }) => {
      const life = this.#lives.get(uid);
      if (life?.ranAt === undefined || life.ranAt > version) return []; // the address of a sandbox that failed is released
      const hasEnded = life.endedAt !== undefined && life.endedAt <= version;
      return hasEnded ? [] : [`${address} was released while its pod ${life.name} ran`];
    });
  }

  /** After a new list, the time at which missing pods ended is unknown. */
  #startAgain(pods: readonly Pod[]): void {
    const listed = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#lives.keys()) if (!listed.has(uid)) this.#ended(uid, 0n);
    for (const pod of pods) this.#see(pod, 0n);
  }

  #see(pod: Pod, version: bigint): void {
    const { uid = '', name } = pod.metadata;
    const life = this.#lives.get(uid) ?? { name };
    this.#lives.set(uid, life);
    if (pod.status?.phase === 'Running') life.ranAt ??= BigInt(pod.metadata.resourceVersion ?? '0');
    if (isBeingDeleted(pod) || isTerminal(pod)) life.endedAt ??= version;
  }

  #ended(uid: string, version: bigint): void {
    const life = this.#lives.get(uid);
    if (life) life.endedAt ??= version;
  }

  #seeLease({ metadata, spec: { address, owner, releasedAt } }: AddressLease): void {
    if (releasedAt === undefined || owner?.kind !== 'Pod') return;
    const version = BigInt(metadata.resourceVersion ?? '0');
    this.#releases.set(`${address} ${releasedAt}`, { address, uid: owner.uid, version });
  }
}
