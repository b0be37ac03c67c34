import { type ClaimOwner, type IPAMClaim, isWorkloadClaim, claimOwnerOf } from '../../api/ipam-claim.js';
import { joinKey } from '../../api/meta.js';
import { isOwnedBy, ownerOfVmi } from '../../api/vm-claims.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import { setMostRecent } from '../../kube/lru.js';
import { VIRTUAL_MACHINE_INSTANCES } from '../../kube/resources.js';
import type { KubeVirtControllerSource } from '../../cluster/kubevirt-controller.js';
import type { ClaimPod } from './claim-pods.js';

/** How often a VMI is read again that did not prove a pod's right. */
export const RECHECK_VMI_MS = 15_000;
const MAX_REMEMBERED_VMIS = 10_000;

/** The launchers that name a VMI with the name of the claim's owner as their controller. */
export interface LauncherVmis {
  /** UIDs of pods: KubeVirt created them, and the API server has shown that their VMI is of the claim's owner. */
  readonly proven: ReadonlySet<string>;
  /** UIDs of VMIs that were not shown to be of the owner. */
  readonly unproven: ReadonlySet<string>;
  /** Of these, the VMIs that were not read lately. */
  readonly due: ReadonlySet<string>;
  /** Why nobody knows who creates launchers, for the claim of a workload. */
  readonly problem?: string;
}

export interface VmiOwnersDependencies {
  readonly kubevirt: KubeVirtControllerSource;
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly log: Logger;
}

/**
 * Whose VMI a launcher names, by UID. ipam does not watch VMIs: it reads the one VMI that has the name of the claim's owner, at most once
 * a sync, once for each UID that a pod names, and again every {@link RECHECK_VMI_MS}.
 */
export class VmiOwners {
  readonly #dependencies: VmiOwnersDependencies;
  /** By UID of the VMI. `owner` is absent if no VMI of that UID was found. */
  readonly #read = new Map<string, { owner?: ClaimOwner; at: number }>();

  constructor(dependencies: VmiOwnersDependencies) {
    this.#dependencies = dependencies;
  }

  /** Without launchers that another user created, because agents give them nothing. All, while nobody knows who creates launchers. */
  createdByKubeVirt(users: readonly ClaimPod[]): readonly ClaimPod[] {
    const { username } = this.#dependencies.kubevirt.controller();
    return users.filter(({ vmi, creator = username }) => vmi === undefined || !username || creator === username);
  }

  verify(users: readonly ClaimPod[], claim: IPAMClaim): LauncherVmis {
    const proven = new Set<string>();
    const unproven = new Set<string>();
    const due = new Set<string>();
    if (!isWorkloadClaim(claim)) return { proven, unproven, due };
    const { username, problem } = this.#dependencies.kubevirt.controller();
    if (problem !== undefined) return { proven, unproven, due, problem };
    const isCandidate = candidateMatcher(claim, username);
    for (const { metadata, vmi, creator } of users) {
      if (vmi === undefined || !isCandidate(vmi.name, creator)) continue;
      if (isOwnedBy(claim, this.#read.get(vmi.uid)?.owner ?? vmi)) proven.add(metadata.uid ?? '');
      else unproven.add(vmi.uid);
    }
    for (const uid of unproven) if (this.#isDue(uid)) due.add(uid);
    return { proven, unproven, due };
  }

  #isDue(uid: string): boolean {
    const read = this.#read.get(uid);
    return read === undefined || this.#dependencies.clock.now() - read.at >= RECHECK_VMI_MS;
  }

  /** Reads the VMI that has the name of the claim's owner. Never rejects: what cannot be read proves nothing. */
  async readVmi({ claim, uids }: { claim: IPAMClaim; uids: Iterable<string> }, call: CallOptions): Promise<void> {
    const { client, clock, log } = this.#dependencies;
    const { namespace = '' } = claim.metadata;
    const name = claimOwnerOf(claim)?.name ?? '';
    let found: { uid: string; owner: ClaimOwner } | undefined;
    try {
      const vmi = await findUnlessGone(client, VIRTUAL_MACHINE_INSTANCES, { namespace, name }, call);
      if (vmi !== undefined) found = { uid: vmi.metadata.uid ?? '', owner: ownerOfVmi(vmi) };
    } catch (error) {
      log.warn({ vmi: joinKey(namespace, name), error: messageOf(error) }, 'the VMI of a launcher cannot be read');
    }
    const at = clock.now();
    for (const uid of uids) {
      const owner = found?.uid === uid ? { owner: found.owner } : {};
      setMostRecent(this.#read, uid, { ...owner, at }, MAX_REMEMBERED_VMIS);
    }
  }
}

/** Of the VMI that has the name of the claim's owner, and created by KubeVirt: by a user whom nobody had reason to note, or by its controller. */
function candidateMatcher(claim: IPAMClaim, username: string): (vmi: string, creator: string | undefined) => boolean {
  const name = claimOwnerOf(claim)?.name;
  return (vmi, creator = username) => vmi === name && creator === username;
}
