/** Pending pods that request the same addresses and can run on the same nodes. */
export interface PendingPodGroup {
  /** Identifies the group in all rounds and for all pools that it requests. */
  readonly key: string;
  readonly pods: number;
  /** How many addresses of the pool each pod requests. */
  readonly requested: number;
  /** The nodes on which the pods can run. */
  readonly nodes: readonly string[];
  /** The node chosen for another pool of the same pods, because a pod needs all its addresses on one node. */
  readonly preferredNode?: string | undefined;
}

/** The addresses that a group is offered on a node. Times are clock times in ms. */
export interface Offer {
  readonly node?: string;
  /** When the node was chosen. */
  readonly chosenAt: number;
  /** Since when a pod of the group could be bound to the node and no address was used. */
  readonly unusedSince?: number;
  /** The share of the node at that time. */
  readonly share: number;
  /** When the group left the offer of a node unused, by node. The scheduler has reasons that are not checked here. */
  readonly declined: ReadonlyMap<string, number>;
}

export interface Placement {
  /** The least share of each node for pending pods. */
  readonly neededByNode: ReadonlyMap<string, number>;
  /** The chosen node by key of the group. */
  readonly nodeByGroup: ReadonlyMap<string, string>;
  readonly offers: ReadonlyMap<string, Offer>;
}

interface PlacementInput {
  readonly budget: number;
  /** The addresses that a new pod can use on each node. */
  readonly usable: ReadonlyMap<string, number>;
  readonly waiting: readonly PendingPodGroup[];
  /** Keys of groups that were not examined in this round. The nodes that they have declined are remembered. */
  readonly skippedGroups?: ReadonlySet<string>;
  readonly offers: ReadonlyMap<string, Offer>;
  readonly now: number;
  /** How long a group may leave an offer unused. */
  readonly offerTimeoutMs: number;
}

/** An offer is late if other nodes must lose addresses first. It counts as failed after this many offer timeouts. */
const LATE_FACTOR = 4;
const NONE_DECLINED: ReadonlyMap<string, number> = new Map();
const NO_GROUPS: ReadonlySet<string> = new Set();

/**
 * Chooses the nodes that get addresses for pending pods. Each group keeps its node until its pods are bound, or until it has left the offer
 * unused for the offer timeout. Then all other groups come first, and the group next tries the node that it never declined or declined longest
 * ago. So each group tries every node on which it can run, and none blocks the last address.
 */
export function placePendingPods(input: PlacementInput): Placement {
  const { waiting, budget, skippedGroups = NO_GROUPS, now } = input;
  const groups = waiting.filter(({ requested, nodes }) => requested <= budget && nodes.length > 0);
  const offers = new Map(groups.map((group) => [group.key, reviewOffer(group, input)]));
  for (const [key, { declined }] of input.offers)
    if (skippedGroups.has(key)) offers.set(key, { chosenAt: now, share: 0, declined });
  const placement = { neededByNode: new Map<string, number>(), nodeByGroup: new Map<string, string>(), offers };
  const inOrder = [...groups].sort((a, b) => lastDeclinedAt(offers.get(a.key)) - lastDeclinedAt(offers.get(b.key)));
  let left = budget;
  const give = (group: PendingPodGroup, node: string, pods: number) => {
    const amount = Math.min(pods, Math.floor(left / group.requested)) * group.requested;
    left -= amount;
    placement.neededByNode.set(node, (placement.neededByNode.get(node) ?? 0) + amount);
  };
  for (const group of inOrder) {
    if (group.requested > left) {
      withdrawOffer(offers, group);
      // the rest is kept for this group: groups that need less would otherwise always use it first
      left = 0;
      continue;
    }
    const node = offers.get(group.key)?.node ?? chooseNode(group, input, offers);
    placement.nodeByGroup.set(group.key, node);
    give(group, node, 1);
  }
  // one pod of each group comes before more pods of one group
  for (const group of inOrder) {
    const node = placement.nodeByGroup.get(group.key);
    if (node !== undefined) give(group, node, group.pods - 1);
  }
  return placement;
}

/** Returns the offer if the group keeps it, else an offer without a node. */
function reviewOffer(group: PendingPodGroup, { offers, usable, now, offerTimeoutMs }: PlacementInput): Offer {
  const before = offers.get(group.key) ?? { chosenAt: now, share: 0, declined: NONE_DECLINED };
  const { node, declined } = before;
  if (node === undefined || !group.nodes.includes(node)) return { chosenAt: now, share: 0, declined };
  const offer = refreshOffer(before, { share: usable.get(node) ?? 0, requested: group.requested, now });
  const isDeclined = offer.unusedSince !== undefined && now - offer.unusedSince >= offerTimeoutMs;
  const isLate = now - offer.chosenAt >= LATE_FACTOR * offerTimeoutMs;
  return isDeclined || isLate ? { chosenAt: now, share: 0, declined: new Map(declined).set(node, now) } : offer;
}

function refreshOffer(
  before: Offer,
  { share, requested, now }: { share: number; requested: number; now: number },
): Offer {
  // a pod has used addresses of the offer, so other pods can too
  const fresh = share < before.share;
  const { unusedSince = now, ...kept } = before;
  const offer = { ...kept, share, chosenAt: fresh ? now : before.chosenAt };
  return share < requested ? offer : { ...offer, unusedSince: fresh ? now : unusedSince };
}

/** Takes back an offer because no address is left. The group has not declined the node. */
function withdrawOffer(offers: Map<string, Offer>, { key }: PendingPodGroup): void {
  const { chosenAt = 0, declined = NONE_DECLINED } = offers.get(key) ?? {};
  offers.set(key, { chosenAt, share: 0, declined });
}

function chooseNode(
  { key, requested, nodes, preferredNode }: PendingPodGroup,
  { usable, now }: PlacementInput,
  offers: Map<string, Offer>,
): string {
  const { declined = NONE_DECLINED } = offers.get(key) ?? {};
  const declinedAt = (node: string) => declined.get(node) ?? 0;
  const lacks = (node: string) => ((usable.get(node) ?? 0) >= requested ? 0 : 1);
  const [first = ''] = [...nodes].sort(
    (a, b) => declinedAt(a) - declinedAt(b) || lacks(a) - lacks(b) || (a < b ? -1 : 1),
  );
  const node = preferredNode !== undefined && nodes.includes(preferredNode) ? preferredNode : first;
  offers.set(key, { node, chosenAt: now, share: usable.get(node) ?? 0, declined });
  return node;
}

/** Sorts groups with an offer first, then groups that declined no node, then groups that declined longest ago. */
function lastDeclinedAt(offer: Offer | undefined): number {
  if (offer?.node !== undefined) return -1;
  return Math.max(0, ...(offer?.declined.values() ?? []));
}
