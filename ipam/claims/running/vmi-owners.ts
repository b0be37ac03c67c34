import { type ClaimOwner, type IPAMClaim, isWorkloadClaim, claimOwnerOf } from '../../../api/ipam-claim.js';
import { joinKey } from '../../../api/meta.js';
import { isOwnedBy, ownerOfVmi } from '../../../api/vm-claims.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { CallOptions, Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { messageOf } from '../../../kube/errors.js';
import type { Logger } from '../../../kube/log.js';
import { setMostRecent } from '../../../kube/informers/cache.js';
import { VIRTUAL_MACHINE_INSTANCES } from '../../../kube/resources.js';
import type { KubeVirtControllerSource } from '../../../cluster/kubevirt-controller.js';
import type { ClaimPod } from './claim-pods.js';

/** How often a VMI is read again that did not verify its launcher. */
export const RECHECK_VMI_MS = 15_000;
const MAX_REMEMBERED_VMIS = 10_000;

/** What is known of launchers whose controller is a VMI with the name of the claim's owner. */
export interface LauncherVmis {
  /** UIDs of pods that KubeVirt created and whose VMI is known to belong to the claim's owner. */
  readonly verifiedPods: ReadonlySet<string>;
  /** UIDs of VMIs that are not known to belong to the owner. */
  readonly unverifiedVmis: ReadonlySet<string>;
  /** Those of the unverified VMIs that must be read again. */
  readonly vmisToRead: ReadonlySet<string>;
  /** Those of the unverified VMIs that could not be read. */
  readonly unreadableVmis: ReadonlySet<string>;
  /** Why the user who creates launchers is unknown; only for the claim of a workload. */
  readonly problem?: string;
}

export interface VmiOwnersDependencies {
  readonly kubevirt: KubeVirtControllerSource;
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
}

/**
 * Verifies the VMIs that launchers name by UID. ipam does not watch VMIs: it reads the one VMI that has the name of the claim's owner, at most once a sync, once
 * for each UID that a pod names, and again every {@link RECHECK_VMI_MS}.
 */
export class VmiOwners {
  readonly #dependencies: VmiOwnersDependencies;
  /** By UID of the VMI. `owner` is absent if no VMI of that UID was found. */
  readonly #read = new Map<string, { owner?: ClaimOwner; at: number; hasFailed: boolean }>();

  constructor(dependencies: VmiOwnersDependencies) {
    this.#dependencies = dependencies;
  }

  /** Leaves out launchers that another user created, because agents give them no address. Returns all while the user is unknown who creates launchers. */
  createdByKubeVirt(pods: readonly ClaimPod[]): readonly ClaimPod[] {
    const { username } = this.#dependencies.kubevirt.controller();
    return pods.filter(({ vmi, creator = username }) => vmi === undefined || !username || creator === username);
  }

  verify(pods: readonly ClaimPod[], claim: IPAMClaim): LauncherVmis {
    const verifiedPods = new Set<string>();
    const unverifiedVmis = new Set<string>();
    const vmisToRead = new Set<string>();
    const unreadableVmis = new Set<string>();
    const found = { verifiedPods, unverifiedVmis, vmisToRead, unreadableVmis };
    if (!isWorkloadClaim(claim)) return found;
    const { username, problem } = this.#dependencies.kubevirt.controller();
    if (problem !== undefined) return { ...found, problem };
    const isCandidate = candidateMatcher(claim, username);
    for (const { metadata, vmi, creator } of pods) {
      if (vmi === undefined || !isCandidate(vmi.name, creator)) continue;
      if (isOwnedBy(claim, this.#read.get(vmi.uid)?.owner ?? vmi)) verifiedPods.add(metadata.uid ?? '');
      else unverifiedVmis.add(vmi.uid);
    }
    for (const uid of unverifiedVmis) this.#sort(uid, { vmisToRead, unreadableVmis });
    return found;
  }

  #sort(uid: string, { vmisToRead, unreadableVmis }: Record<'vmisToRead' | 'unreadableVmis', Set<string>>): void {
    const read = this.#read.get(uid);
    if (read === undefined || this.#dependencies.clock.now() - read.at >= RECHECK_VMI_MS) vmisToRead.add(uid);
    else if (read.hasFailed) unreadableVmis.add(uid);
  }

  /** Reads the VMI that has the name of the claim's owner. Never rejects: a VMI that cannot be read verifies no launcher. */
  async readVmi({ claim, uids }: { claim: IPAMClaim; uids: Iterable<string> }, call: CallOptions): Promise<void> {
    const { client, clock, log } = this.#dependencies;
    const { namespace = '' } = claim.metadata;
    const name = claimOwnerOf(claim)?.name ?? '';
    let found: { uid: string; owner: ClaimOwner } | undefined;
    let hasFailed = false;
    try {
      const vmi = await findUnlessGone(client, VIRTUAL_MACHINE_INSTANCES, { namespace, name }, call);
      if (vmi !== undefined) found = { uid: vmi.metadata.uid ?? '', owner: ownerOfVmi(vmi) };
    } catch (error) {
      hasFailed = true;
      log.warn({ vmi: joinKey(namespace, name), error: messageOf(error) }, 'cannot read the VMI of a launcher');
    }
    const at = clock.now();
    for (const uid of uids) {
      const owner = found?.uid === uid ? { owner: found.owner } : {};
      setMostRecent(this.#read, uid, { ...owner, at, hasFailed }, MAX_REMEMBERED_VMIS);
    }
  }
}

/** Matches launchers of the VMI with the name of the claim's owner that KubeVirt created. A creator that is not recorded counts as KubeVirt's controller. */
function candidateMatcher(claim: IPAMClaim, username: string): (vmi: string, creator: string | undefined) => boolean {
  const name = claimOwnerOf(claim)?.name;
  return (vmi, creator = username) => vmi === name && creator === username;
}
