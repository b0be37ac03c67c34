import { type Pod, isLauncher, isTerminal, podInterfaceName } from '../../api/pod.js';
import type { AddressLease } from '../../api/address-lease.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { isBeingDeleted, type KubeObject } from '../../api/meta.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { bareAddress } from '../../test/bare-address.js';
import { until } from '../../bed/processes/wait.js';
import { PodObserver } from '../../bed/faults/pod-observer.js';
import { NET1 } from '../../bed/faults/agent-pods.js';
import { ClaimLeaseObserver } from '../../bed/story/claim-lease-observer.js';
import type { Story } from '../../bed/story/story.js';
import type { Churn } from './churn.js';
import type { Fleet } from './fleet.js';
import { LauncherObserver } from './launcher-observer.js';

/** Twice the --max-staleness of the bed. */
const COOLDOWN_MS = 1_000;
const SETTLE_MS = 120_000;
const DATA = podInterfaceName('data');

/** Checks invariants: all the time by watch events alone, and in full while nothing is changed. */
export class Judge {
  readonly leaks: string[] = [];
  settled = 0;
  readonly #fleet: Fleet;
  readonly #story: Story;
  readonly #claims: ClaimLeaseObserver;
  readonly #pods: PodObserver;
  readonly #launchers: LauncherObserver;
  #ofPods: string[] = [];

  constructor(fleet: Fleet, story: Story, space: string) {
    this.#fleet = fleet;
    this.#story = story;
    const { client } = fleet.bed;
    const { namespace } = story;
    this.#claims = new ClaimLeaseObserver(client, { space, cooldownMs: COOLDOWN_MS, namespace });
    this.#pods = new PodObserver(client, { space, namespace });
    this.#launchers = new LauncherObserver(client, namespace);
  }

  start(): void {
    for (const observer of [this.#claims, this.#pods, this.#launchers]) observer.start();
  }

  async stop(): Promise<void> {
    const [, ofPods] = await Promise.all([this.#claims.stop(), this.#pods.stop(), this.#launchers.stop()]);
    this.#ofPods = ofPods;
  }

  get violations(): string[] {
    return [...this.#claims.violations, ...this.#launchers.violations, ...this.#ofPods];
  }

  get counts(): { events: number; releases: number; launchers: number } {
    return {
      events: this.#claims.events,
      releases: this.#claims.releases + this.#pods.releases,
      launchers: this.#launchers.launchers,
    };
  }

  /** Waits until no lease is leaked, and every VM and pod has its addresses. To be called while nothing is changed. */
  async checkSettled(churn: Churn): Promise<void> {
    try {
      await until(
        'everything to have its addresses',
        async () => {
          const open = await this.#openIssues(churn);
          if (open.length > 0) throw new Error(open.slice(0, 5).join('; '));
          return true;
        },
        { timeoutMs: SETTLE_MS, everyMs: 500 },
      );
      this.settled++;
    } catch (error) {
      this.leaks.push(error instanceof Error ? error.message : String(error));
    }
  }

  async #openIssues(churn: Churn): Promise<string[]> {
    const { client, namespace } = this.#story;
    // leases before their owners
    const leases = [...(await this.#story.addresses.leases()).values()];
    const [claims, pods] = await Promise.all([
      client.list(IPAM_CLAIMS, { namespace }),
      client.list(PODS, { namespace }),
    ]);
    const living = pods.items.filter((pod) => !isTerminal(pod));
    const holdings = new Holdings(leases);
    return [
      ...holdings.leaked(new Set([...claims.items, ...living].map(({ metadata }) => metadata.uid))),
      ...claims.items.filter(isOfUser).flatMap((claim) => issuesOfClaim(claim, holdings)),
      ...issuesOfVms(churn, claims.items, living),
      ...(await this.#issuesOnWire(living.filter(isSettledPod), claims.items, holdings)),
    ];
  }

  async #issuesOnWire(pods: readonly Pod[], claims: readonly IPAMClaim[], holdings: Holdings): Promise<string[]> {
    const { wire } = this.#fleet.bed;
    if (wire === undefined) return [];
    const found = await Promise.all(pods.map((pod) => wire.addressesOf(pod, isLauncher(pod) ? DATA : NET1)));
    return pods.flatMap((pod, index) => {
      const claim = claims.find(({ metadata }) => metadata.name === `${vmOf(pod) ?? ''}.data`);
      const owner = isLauncher(pod) ? claim : pod;
      const [has, holds] = [addressesText(found[index]!), holdings.of(owner?.metadata.uid)];
      return has === holds ? [] : [`pod ${pod.metadata.name} has "${has}" and its owner holds "${holds}"`];
    });
  }
}

/** The held leases of a namespace. */
class Holdings {
  readonly #held: readonly AddressLease[];

  constructor(leases: readonly AddressLease[]) {
    this.#held = leases.filter(({ spec }) => spec.releasedAt === undefined);
  }

  /** The addresses of an owner, sorted. */
  of(uid: string | undefined): string {
    return addressesText(this.#held.flatMap(({ spec }) => (spec.owner?.uid === uid ? [spec.address] : [])));
  }

  leaked(uids: ReadonlySet<string | undefined>): string[] {
    return this.#held.flatMap(({ metadata, spec: { owner } }) =>
      owner === undefined || uids.has(owner.uid) ? [] : [`${metadata.name} is held for ${owner.name}, which is gone`],
    );
  }
}

function issuesOfClaim({ metadata, status }: IPAMClaim, holdings: Holdings): string[] {
  const [shows, holds] = [addressesText(status?.ips ?? []), holdings.of(metadata.uid)];
  return shows !== '' && shows === holds ? [] : [`claim ${metadata.name} shows "${shows}" and holds "${holds}"`];
}

function issuesOfVms({ vms }: Churn, claims: readonly IPAMClaim[], pods: readonly Pod[]): string[] {
  return [...vms].flatMap(([vm, state]) => {
    const launchers = pods.filter((pod) => isLauncher(pod) && vmOf(pod) === vm).length;
    return [
      ...(claims.some(({ metadata }) => metadata.name === `${vm}.data`) ? [] : [`VM ${vm} has no claim`]),
      ...(launchers === (state === 'running' ? 1 : 0) ? [] : [`VM ${vm} has ${String(launchers)} launchers`]),
    ];
  });
}

function vmOf(launcher: Pod): string | undefined {
  return launcher.metadata.ownerReferences?.[0]?.name;
}

/** Not of a probe, which may come or go at any time. */
function isOfUser({ metadata }: KubeObject): boolean {
  return !metadata.name.startsWith('probe-');
}

function isSettledPod(pod: Pod): boolean {
  return pod.status?.phase === 'Running' && !isBeingDeleted(pod) && isOfUser(pod);
}

function addressesText(addresses: readonly string[]): string {
  return addresses.map(bareAddress).sort().join();
}
