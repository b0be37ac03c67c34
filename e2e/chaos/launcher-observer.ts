import type { IPAMClaim } from '../../api/ipam-claim.js';
import { networkStatuses, type NetworkStatus } from '../../api/network-status.js';
import { interfaceNameOf, networkSelectionsOf } from '../../api/network-selection.js';
import { isLauncher, type Pod } from '../../api/pod.js';
import type { Client } from '../../kube/client.js';
import { Reflector } from '../../kube/reflector.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';

/** Watches launchers and claims, and checks that each launcher has exactly the addresses of the claims it references. Claims are never named twice. */
export class LauncherObserver {
  readonly violations = new Set<string>();
  readonly #pods: Reflector<Pod>;
  readonly #claims: Reflector<IPAMClaim>;
  /** Sorted addresses, by name of the claim. */
  readonly #claimed = new Map<string, string>();
  /** By name of the claim: pod and its sorted addresses. */
  readonly #used = new Map<string, Map<string, string>>();

  constructor(client: Client, namespace: string) {
    const see = (pod: Pod) => {
      if (isLauncher(pod)) this.#seeLauncher(pod);
    };
    this.#pods = new Reflector<Pod>({
      client,
      resource: PODS,
      namespace,
      transform: (pod) => pod,
      store: { replace: (pods) => pods.forEach(see), upsert: see, remove: () => undefined },
    });
    const seeClaim = (claim: IPAMClaim) => this.#seeClaim(claim);
    this.#claims = new Reflector<IPAMClaim>({
      client,
      resource: IPAM_CLAIMS,
      namespace,
      transform: (claim) => claim,
      store: { replace: (claims) => claims.forEach(seeClaim), upsert: seeClaim, remove: () => undefined },
    });
  }

  /** The number of launchers that had the addresses of a claim. */
  get launchers(): number {
    return new Set([...this.#used.values()].flatMap((pods) => [...pods.keys()])).size;
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
      const pods = this.#used.get(claimReference) ?? new Map<string, string>();
      this.#used.set(claimReference, pods.set(pod.metadata.name, ips.map(bareAddress).sort().join()));
      this.#compare(claimReference);
    }
  }

  #seeClaim({ metadata: { name }, status }: IPAMClaim): void {
    if ((status?.ips?.length ?? 0) === 0) return;
    this.#claimed.set(name, status!.ips!.map(bareAddress).sort().join());
    this.#compare(name);
  }

  #compare(name: string): void {
    const claimed = this.#claimed.get(name);
    if (claimed === undefined) return;
    for (const [pod, used] of this.#used.get(name) ?? []) {
      if (used !== claimed) this.violations.add(`pod ${pod} has ${used}, but its claim ${name} has ${claimed}`);
    }
  }
}
