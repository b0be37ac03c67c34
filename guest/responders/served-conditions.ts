import type { IPAMClaim } from '../../api/ipam-claim.js';
import { GUEST_SERVED } from '../../api/names.js';
import { conditionsPatch, hasConditions } from '../../cluster/claim-conditions.js';
import { BY_WORKLOAD } from '../../cluster/indexes.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Sync } from '../../kube/controller-loop.js';
import { objectKey } from '../../api/meta.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import type { Reconciler } from '../reconciler.js';
import { type RefusedGuest, findGuests } from '../running-guests.js';
import type { GuestViews } from '../views.js';
import { BY_NETWORK } from '../watch-specs.js';

/** Changes of one network that come within this time are looked at together: each look reads all of its claims. */
const BATCH_MS = 1_000;

export interface ServedConditionsDeps {
  readonly views: GuestViews;
  readonly client: Pick<Client, 'patch'>;
  readonly clock: Clock;
}

/** Tells by the condition GuestServed which running guests the responders of a network refuse. Responders themselves write nothing. */
export class ServedConditions implements Reconciler {
  readonly name = 'served';
  readonly workers = 2;
  readonly #deps: ServedConditionsDeps;
  /** The networks that changed since the last batch. */
  readonly #changed = new Set<string>();

  constructor(deps: ServedConditionsDeps) {
    this.#deps = deps;
  }

  listen(add: (keys: readonly string[]) => void): void {
    const { watched, directory } = this.#deps.views;
    const { vmis, claims } = watched;
    const collect = (networks: readonly string[]) => this.#collect(networks, add);
    claims.onChange(({ object }) => collect([object.spec.network]));
    vmis.onChange(({ object }) => {
      const own = claims.cache.byIndex(BY_WORKLOAD, objectKey(object));
      collect(own.map(({ spec }) => spec.network));
    });
    watched.networks.onChange(({ object }) => collect(object.config.ok ? [object.config.network.name] : []));
    directory.onChange((networks) => collect([...networks]));
  }

  allKeys(): readonly string[] {
    return [...new Set(this.#deps.views.watched.claims.cache.list().map(({ spec }) => spec.network))];
  }

  createSync(): Sync {
    return async (network: string, signal: AbortSignal) => {
      const refused = await this.#findRefused(network, signal);
      if (refused === undefined) return undefined;
      const claims = this.#deps.views.watched.claims.cache.byIndex(BY_NETWORK, network);
      const failures: unknown[] = [];
      // a tenant who changes a claim all the time must not delay the conditions of the others
      for (const claim of claims) {
        try {
          await this.#write(claim, refused.get(claim.metadata.uid));
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw failures[0];
      return undefined;
    };
  }

  /** By the UID of the claim: claims may change meanwhile. Undefined if the term of leadership ends. */
  async #findRefused(
    network: string,
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string | undefined, RefusedGuest> | undefined> {
    const { views, clock } = this.#deps;
    const { watched, directory } = views;
    const hasResponders = directory
      .poolsOf(network)
      .some(({ state }) => state.kind === 'served' && state.pool.guest?.dhcp !== undefined);
    if (!hasResponders) return new Map();
    const caches = { claims: watched.claims.cache, vmis: watched.vmis.cache, networks: watched.networks.cache };
    const found = await runInSlices(findGuests(network, { ...caches, directory }), clock, signal);
    return found && new Map(found.refused.map((each) => [each.claim.metadata.uid, each]));
  }

  async #write(claim: IPAMClaim, refused: { reason: string; message: string } | undefined): Promise<void> {
    const desired = {
      [GUEST_SERVED]: refused && { status: 'False' as const, reason: refused.reason, message: refused.message },
    };
    // a claim without a status has no addresses yet, and cannot be patched
    if (claim.status === undefined || hasConditions(claim, desired)) return;
    const { name, namespace = '' } = claim.metadata;
    const body = conditionsPatch(claim, desired, this.#deps.clock.wall());
    await this.#deps.client.patch(IPAM_CLAIMS, { namespace, name }, { type: 'merge', body }, { subresource: 'status' });
  }

  #collect(networks: readonly string[], add: (keys: readonly string[]) => void): void {
    if (networks.length === 0) return;
    const isFirst = this.#changed.size === 0;
    for (const network of networks) this.#changed.add(network);
    if (!isFirst) return;
    this.#deps.clock.setTimer(BATCH_MS, () => {
      const keys = [...this.#changed];
      this.#changed.clear();
      add(keys);
    });
  }
}
