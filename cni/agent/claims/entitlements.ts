import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { PERSISTENT_IPS_DISABLED, PERSISTENT_IPS_LABEL } from '../../../api/names.js';
import { isDefaultNetwork } from '../../../api/network-selection.js';
import { objectKey } from '../../../api/meta.js';
import { controllingVmi } from '../../../api/pod.js';
import type { Lister } from '../../../kube/cache.js';
import { NAMESPACES } from '../../../kube/resources.js';
import type { Doubt } from '../../../cluster/cluster-view.js';
import type { Gate } from '../../../cluster/gates.js';
import { type KubeVirtNamespace, creatorProblem } from '../../../cluster/kubevirt-controller.js';
import type { NetworkAttachment } from '../../../cluster/shrink.js';
import { unread } from '../api-failure.js';
import type { Attachment } from '../attachment.js';
import type { Call } from '../call.js';
import { CniCode, CniError } from '../cni-error.js';
import type { NodePod } from '../pods/node-pod.js';
import type { Judgement, Seeker } from './judgement.js';
import { judgeLauncher } from './launcher-claim.js';
import { Patience, type PatienceDeps } from '../patience.js';
import { judgePod } from './pod-claim.js';
import { SightedView } from './sighted-view.js';
import type { Sightings } from './sightings.js';

/** Whether an attachment has the addresses of a claim, or its own. */
export type Entitlement = { readonly kind: 'claim'; readonly claim: IPAMClaim } | { readonly kind: 'none' };

export interface EntitlementsDeps extends PatienceDeps {
  readonly sightings: Sightings;
  readonly networks: Pick<Lister<NetworkAttachment>, 'get'>;
  readonly gate: Gate;
  readonly kubevirt: KubeVirtNamespace;
  readonly maxStalenessMs: number;
}

/** What an interface has a right to is decided on what was seen lately; what speaks against a right is looked at again, live. */
export class Entitlements {
  readonly #deps: EntitlementsDeps;

  constructor(deps: EntitlementsDeps) {
    this.#deps = deps;
  }

  /**
   * Waits for a claim that is about to be made.
   * @throws {CniError} 11 where the answer may be another one later, 100 where somebody has to change something
   */
  async of(attachment: Attachment, call: Call): Promise<Entitlement> {
    const { clock, maxStalenessMs } = this.#deps;
    const patience = new Patience(this.#deps, attachment, call);
    for (;;) {
      const judgement = await this.judge(attachment, clock.now() - maxStalenessMs, call);
      switch (judgement.kind) {
        case 'claim':
        case 'none':
          return judgement;
        case 'refused':
          throw new CniError(CniCode.Refused, judgement.reason);
        case 'pending':
          if (judgement.isOnItsWay !== true) throw new CniError(CniCode.TryAgain, judgement.reason);
      }
      await patience.wait(judgement.reason);
    }
  }

  /**
   * One look, without waiting.
   * @param since in the clock's ms: what was seen before does not count
   * @throws {CniError} 11 where the API server could not be asked
   */
  async judge({ pod, selection, network }: Attachment, since: number, call: Call): Promise<Judgement> {
    if (isDefaultNetwork(selection)) return { kind: 'none' };
    const judgement = await this.#settle({ pod, selection, network }, since, call);
    const isPredicted = judgement.kind === 'pending' && judgement.isPredicted === true;
    if (judgement.kind === 'claim') return this.#refuseCreator(pod) ?? judgement;
    // the webhook has seen that a pod with a reference shall have a claim
    if (!isPredicted || selection.claimReference !== undefined) return judgement;
    return (await this.#hasOptedOut(pod.metadata.namespace, call)) ? { kind: 'none' } : judgement;
  }

  /** Owner references are tenant-writable: they prove nothing about a launcher that KubeVirt's controller did not create. */
  #refuseCreator(pod: NodePod): Judgement | undefined {
    const controller = this.#deps.kubevirt.controller();
    const problem = controllingVmi(pod) === undefined ? undefined : creatorProblem(pod, controller);
    if (problem === undefined) return undefined;
    const reason = `pod ${objectKey(pod)} gets no address of an IPAMClaim: ${problem}`;
    return { kind: controller.problem === undefined ? 'refused' : 'pending', reason };
  }

  async #settle(seeker: Seeker, since: number, { signal }: Call): Promise<Judgement> {
    const { sightings, networks, gate, clock } = this.#deps;
    const { namespace } = seeker.pod.metadata;
    const view = new SightedView({ namespace, sightings, networks, gate, since, now: clock.now() });
    const judge = controllingVmi(seeker.pod) === undefined ? judgePod : judgeLauncher;
    for (;;) {
      const doubted = new Map<string, Doubt>();
      const judgement = judge(seeker, { view, doubt: (doubt) => doubted.set(`${doubt.kind} ${doubt.key}`, doubt) });
      const doubts = [...doubted.values()];
      const open = doubts.filter((doubt) => !view.hasLooked(doubt));
      if (open.length > 0) {
        await Promise.all(open.map((doubt) => view.look(doubt, signal)));
        continue;
      }
      const failure = view.failureOf(doubts);
      if (failure !== undefined) throw unread(failure);
      return judgement;
    }
  }

  async #hasOptedOut(namespace: string, { signal }: Call): Promise<boolean> {
    try {
      const { object } = await this.#deps.sightings.read(NAMESPACES, namespace, signal);
      return object?.metadata.labels?.[PERSISTENT_IPS_LABEL] === PERSISTENT_IPS_DISABLED;
    } catch (error) {
      throw unread(error);
    }
  }
}
