import type { IPAMClaim } from '../../api/ipam-claim.js';
import { type NetworkStatus, type Pod, isLauncher, networkStatuses } from '../../api/pod.js';
import { interfaceNameOf, networkSelectionsOf } from '../../api/networks/network-selection.js';
import type { Client } from '../../kube/client.js';
import type { Reflector } from '../../kube/informers/reflector.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { watchObjects } from '../../bed/story/watched-objects.js';
import { bareAddress } from '../../test/bare-address.js';

/**
 * A controller whose API server hung may see a VM that has just been deleted, and create its claim again for seconds. The launchers of the VM
 * end within this time, if it was deleted.
 */
const ENDING_MS = 60_000;

/** A launcher that used a claim which was deleted and created again with other addresses. */
interface Suspect {
  readonly pod: string;
  readonly seenAt: number;
  readonly text: string;
}

/** Watches launchers and claims, and checks that each launcher has exactly the addresses of the claims it references. */
export class LauncherObserver {
  readonly #violations = new Set<string>();
  #suspects: Suspect[] = [];
  readonly #pods: Reflector<Pod>;
  readonly #claims: Reflector<IPAMClaim>;
  /** Sorted addresses, by name of the claim. */
  readonly #claimed = new Map<string, { readonly uid: string; readonly addresses: string }>();
  /** By name of the claim: pod and its sorted addresses. */
  readonly #used = new Map<string, Map<string, string>>();
  readonly #launchers = new Set<string>();

  constructor(client: Client, namespace: string) {
    const see = (pod: Pod) => {
      if (isLauncher(pod)) this.#seeLauncher(pod);
    };
    this.#pods = watchObjects(client, PODS, {
      namespace,
      see,
      list: (pods) => {
        const names = new Set(pods.map(({ metadata }) => metadata.name));
        this.#forgetEnded((pod) => !names.has(pod));
        pods.forEach(see);
      },
      remove: ({ metadata }) => this.#forgetEnded((pod) => pod === metadata.name),
    });
    this.#claims = watchObjects(client, IPAM_CLAIMS, { namespace, see: (claim) => this.#seeClaim(claim) });
  }

  get violations(): string[] {
    return [...this.#violations, ...this.#suspects.map(({ text }) => text)];
  }

  /** The number of launchers that had the addresses of a claim. */
  get launchers(): number {
    return this.#launchers.size;
  }

  start(): void {
    this.#pods.start();
    this.#claims.start();
  }

  async stop(): Promise<void> {
    await Promise.all([this.#pods.stop(), this.#claims.stop()]);
  }

  #seeLauncher(pod: Pod): void {
    const statuses: (NetworkStatus & { ips?: string[] })[] = networkStatuses(pod);
    for (const selection of networkSelectionsOf(pod)) {
      const { claimReference } = selection;
      const ips = statuses.find((status) => status.interface === interfaceNameOf(selection))?.ips;
      if (claimReference === undefined || ips === undefined) continue;
      this.#launchers.add(pod.metadata.name);
      const pods = this.#used.get(claimReference) ?? new Map<string, string>();
      this.#used.set(claimReference, pods.set(pod.metadata.name, ips.map(bareAddress).sort().join()));
      this.#compare(claimReference);
    }
  }

  #seeClaim({ metadata: { name, uid = '' }, status }: IPAMClaim): void {
    if ((status?.ips?.length ?? 0) === 0) return;
    const addresses = status!.ips!.map(bareAddress).sort().join();
    const before = this.#claimed.get(name);
    this.#claimed.set(name, { uid, addresses });
    if (before === undefined || before.uid === uid) {
      this.#compare(name);
      return;
    }
    for (const [pod, used] of this.#used.get(name) ?? []) {
      const text = describeDifference(pod, used, name, addresses);
      if (used !== addresses) this.#suspects.push({ pod, seenAt: Date.now(), text });
    }
    this.#used.delete(name);
  }

  #forgetEnded(hasEnded: (pod: string) => boolean): void {
    const since = Date.now() - ENDING_MS;
    this.#suspects = this.#suspects.filter(({ pod, seenAt }) => seenAt < since || !hasEnded(pod));
    for (const pods of this.#used.values()) {
      for (const pod of [...pods.keys()].filter(hasEnded)) pods.delete(pod);
    }
  }

  #compare(name: string): void {
    const addresses = this.#claimed.get(name)?.addresses;
    if (addresses === undefined) return;
    for (const [pod, used] of this.#used.get(name) ?? []) {
      if (used !== addresses) this.#violations.add(describeDifference(pod, used, name, addresses));
    }
  }
}

function describeDifference(pod: string, used: string, claim: string, addresses: string): string {
  return `pod ${pod} has ${used}, but its claim ${claim} has ${addresses}`;
}
