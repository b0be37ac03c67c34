import { objectKey } from '../../../api/meta.js';
import { type IPAMClaim, isWorkloadClaim } from '../../../api/ipam-claim.js';
import { OWNER_KIND_SERVED } from '../../../api/names.js';
import { areServed } from '../../../kube/absence.js';
import type { Cache } from '../../../kube/informers/cache.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { isAborted, isConflict, isNotFound, messageOf } from '../../../kube/errors.js';
import { forEachInSlices, forEachParallel } from '../../../kube/run-in-slices.js';
import type { Logger } from '../../../kube/log.js';
import { IPAM_CLAIMS, VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES } from '../../../kube/resources.js';
import { PeriodicTask } from '../../../process/periodic-task.js';
import {
  type ConditionOf,
  OWNER_KIND_NOT_SERVED,
  conditionOf,
  conditionsAfter,
} from '../../../cluster/claim-conditions.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';

interface UnservedOwnersDeps {
  readonly claims: Pick<Cache<IPAMClaim>, 'list'>;
  readonly directory: Pick<PoolDirectory, 'resolve'>;
  readonly client: Pick<Client, 'patch'> & { readonly transport: Pick<Client['transport'], 'request'> };
  readonly clock: Clock;
  readonly log: Logger;
}

const PAUSE_MS = 10_000;
/** The rest is written in the next round. */
const MAX_WRITES_PER_ROUND = 500;
const PARALLEL_WRITES = 4;
const UNSERVED: ConditionOf<'OwnerKindServed'> = {
  status: 'False',
  reason: 'KindNotServed',
  message: OWNER_KIND_NOT_SERVED,
};

/**
 * Sets a condition on claims that cannot be released because the API server does not serve the kinds of VMs, and removes it afterwards. Claims of another IPAM are
 * skipped, because their status is not ours. The feature gate is ignored: it closes if it follows KubeVirt's object and that is gone.
 */
export class UnservedOwners extends PeriodicTask {
  readonly #deps: UnservedOwnersDeps;

  constructor(deps: UnservedOwnersDeps) {
    super({ clock: deps.clock, pauseMs: PAUSE_MS, run: (signal) => this.#run(signal) });
    this.#deps = deps;
  }

  async #run(signal: AbortSignal): Promise<void> {
    try {
      await this.#round(signal);
    } catch (error) {
      if (isAborted(error)) return;
      this.#deps.log.warn({}, `cannot check whether the API server serves VMs: ${messageOf(error)}`);
    }
  }

  async #round(signal: AbortSignal): Promise<void> {
    const { claims, client, clock, directory } = this.#deps;
    const served = await areServed(client.transport, [VIRTUAL_MACHINES, VIRTUAL_MACHINE_INSTANCES], signal);
    const due: IPAMClaim[] = [];
    const check = (claim: IPAMClaim) => {
      if (due.length === MAX_WRITES_PER_ROUND) return;
      const isSaid = conditionOf(claim, OWNER_KIND_SERVED) !== undefined;
      if (isSaid !== served || !isWorkloadClaim(claim) || directory.resolve(claim).kind === 'foreign') return;
      due.push(claim);
    };
    await forEachInSlices(claims.list(), check, clock, signal);
    await forEachParallel(due, PARALLEL_WRITES, (claim) => this.#write(claim, served, signal), signal);
  }

  /** Never rejects: the next round tries a failed write again. */
  async #write(claim: IPAMClaim, served: boolean, signal: AbortSignal): Promise<void> {
    const { client, clock, log } = this.#deps;
    const { namespace, name, uid, resourceVersion } = claim.metadata;
    const conditions = conditionsAfter(claim, { [OWNER_KIND_SERVED]: served ? undefined : UNSERVED }, clock.wall());
    const status = { ips: claim.status?.ips ?? [], conditions };
    const patch = { type: 'merge' as const, body: { metadata: { uid, resourceVersion }, status } };
    try {
      await client.patch(IPAM_CLAIMS, { namespace, name }, patch, { subresource: 'status', signal });
    } catch (error) {
      if (isConflict(error) || isNotFound(error) || signal.aborted) return;
      const fields = { claim: objectKey(claim) };
      log.warn(fields, `cannot write condition ${OWNER_KIND_SERVED}: ${messageOf(error)}`);
    }
  }
}
