import type { Vmi } from './virtual-machine-instance.js';

/** What a step of virt-handler does to the networks of launchers, by the names of their pods. */
export interface GuestMoves {
  readonly leaving: readonly string[];
  readonly arriving: readonly string[];
}

/**
 * With bridge binding, virt-handler takes the addresses off a launcher's interface and leaves them to the guest. Here the
 * launcher answers for its guest, so it keeps them while the guest runs in it: the target of a migration is prepared without
 * them, and gets them when the guest has left the source.
 */
export function guestMoves(before: Vmi, after: Vmi): GuestMoves {
  const was = before.status?.migrationState ?? {};
  const is = after.status?.migrationState ?? {};
  const names = (...pods: (string | undefined)[]) => pods.filter((pod) => pod !== undefined);
  if (!was.targetNodeAddress && is.targetNodeAddress) return { leaving: names(is.targetPod), arriving: [] };
  if (!was.completed && is.completed && !is.failed) {
    return { leaving: names(is.sourcePod), arriving: names(is.targetPod) };
  }
  return { leaving: [], arriving: [] };
}
