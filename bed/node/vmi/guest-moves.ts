import type { Vmi } from './virtual-machine-instance.js';

/** The launcher pods that a guest leaves, and those at which it arrives, by name. */
export interface GuestMoves {
  readonly leaving: readonly string[];
  readonly arriving: readonly string[];
}

/**
 * With bridge binding, virt-handler removes the addresses from a launcher's interface, because the guest has them. Here no guest
 * runs, so a launcher keeps the addresses while its guest would run in it. The target of a migration is prepared without them, and
 * gets them when the guest has left the source.
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
