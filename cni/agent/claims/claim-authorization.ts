import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../../api/names.js';
import { isDefaultNetwork } from '../../../api/network-selection.js';
import { objectKey } from '../../../api/meta.js';
import { controllingVmi } from '../../../api/pod.js';
import type { Lister } from '../../../kube/cache.js';
import { NAMESPACES } from '../../../kube/resources.js';
import type { Recheck } from '../../../cluster/cluster-view.js';
import type { PersistentIPsGate } from '../../../cluster/persistent-ips-gate.js';
import { type KubeVirtControllerSource, describeUntrustedCreator } from '../../../cluster/kubevirt-controller.js';
import type { ParsedNad } from '../../../cluster/transforms.js';
import { asReadError, CniCode, CniError, readResult } from '../cni-error.js';
import type { Attachment } from '../attachment.js';
import { type BoundedWaitDeps, type RequestContext, BoundedWait } from '../request-context.js';
import type { NodePod } from '../node-pods.js';
import type { AuthorizationDecision, AttachmentRequest } from './authorization-decision.js';
import { authorizeLauncher } from './launcher-claim.js';
import { authorizePod } from './pod-claim.js';
import { ReadCacheView } from './read-cache-view.js';
import type { ReadCache } from './read-cache.js';

/** The claim whose addresses an attachment gets; `none`: it gets its own. */
export type AuthorizedClaim = { readonly kind: 'claim'; readonly claim: IPAMClaim } | { readonly kind: 'none' };

export interface ClaimAuthorizationDeps extends BoundedWaitDeps {
  readonly reads: ReadCache;
  readonly networks: Pick<Lister<ParsedNad>, 'get'>;
  readonly gate: PersistentIPsGate;
  readonly kubevirt: KubeVirtControllerSource;
  readonly maxStalenessMs: number;
}

/** Decides which claim a pod may use. It trusts recent cached reads, and reads objects live before it refuses. */
export class ClaimAuthorization {
  readonly #deps: ClaimAuthorizationDeps;

  constructor(deps: ClaimAuthorizationDeps) {
    this.#deps = deps;
  }

  /**
   * Authorizes an attachment. Waits for a claim that is about to be created.
   * @throws {CniError} 11 if a retry may succeed, 100 if an object must be changed first
   */
  async authorize(attachment: Attachment, call: RequestContext): Promise<AuthorizedClaim> {
    const { clock, maxStalenessMs } = this.#deps;
    const wait = new BoundedWait(this.#deps, attachment.pod.metadata.uid, call);
    for (;;) {
      const decision = await this.decide(attachment, clock.now() - maxStalenessMs, call);
      switch (decision.kind) {
        case 'claim':
        case 'none':
          return decision;
        case 'refused':
          throw new CniError(CniCode.Refused, decision.reason);
        case 'pending':
          if (decision.isOnItsWay !== true) throw new CniError(CniCode.TryAgain, decision.reason);
      }
      await wait.pause(decision.reason);
    }
  }

  /**
   * Decides once, without waiting.
   * @param since ignores reads before this time, in the clock's ms
   * @throws {CniError} 11 if a read failed
   */
  async decide(attachment: Attachment, since: number, call: RequestContext): Promise<AuthorizationDecision> {
    const { pod, selection, network } = attachment;
    if (isDefaultNetwork(selection)) return { kind: 'none' };
    const decision = await this.#decideRechecking({ pod, selection, network }, since, call);
    const isPredicted = decision.kind === 'pending' && decision.isPredicted === true;
    if (decision.kind === 'claim') return this.#checkCreator(pod) ?? decision;
    // the webhook has already checked the namespace of a pod with a reference
    if (!isPredicted || selection.claimReference !== undefined) return decision;
    return (await this.#hasOptedOut(pod.metadata.namespace, call)) ? { kind: 'none' } : decision;
  }

  /** Refuses launchers that KubeVirt's controller did not create, because tenants can write owner references. */
  #checkCreator(pod: NodePod): AuthorizationDecision | undefined {
    const controller = this.#deps.kubevirt.controller();
    const problem = controllingVmi(pod) === undefined ? undefined : describeUntrustedCreator(pod, controller);
    if (problem === undefined) return undefined;
    const reason = `pod ${objectKey(pod)} may not use an IPAMClaim: ${problem}`;
    return { kind: controller.problem === undefined ? 'refused' : 'pending', reason };
  }

  async #decideRechecking(
    request: AttachmentRequest,
    since: number,
    { signal }: RequestContext,
  ): Promise<AuthorizationDecision> {
    const { reads, networks, gate, clock } = this.#deps;
    const { namespace } = request.pod.metadata;
    const view = new ReadCacheView({ namespace, reads, networks, gate, since, now: clock.now() });
    const judge = controllingVmi(request.pod) === undefined ? authorizePod : authorizeLauncher;
    for (;;) {
      const rechecksByKey = new Map<string, Recheck>();
      const decision = judge(request, {
        view,
        addRecheck: (recheck) => rechecksByKey.set(`${recheck.kind} ${recheck.key}`, recheck),
      });
      const rechecks = [...rechecksByKey.values()];
      const open = rechecks.filter((recheck) => !view.hasRead(recheck));
      if (open.length > 0) {
        await Promise.all(open.map((recheck) => view.read(recheck, signal)));
        continue;
      }
      const failure = view.failureOf(rechecks);
      if (failure !== undefined) throw asReadError(failure);
      return decision;
    }
  }

  async #hasOptedOut(namespace: string, { signal }: RequestContext): Promise<boolean> {
    const { object } = await readResult(this.#deps.reads.read(NAMESPACES, namespace, signal));
    return object?.metadata.labels?.[PERSISTENT_IPS_LABEL] === PERSISTENT_IPS_DISABLED;
  }
}
