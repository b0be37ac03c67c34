/** Pods that no node had enough for, and that are alike: they need the same, and may run on the same nodes. */
export interface PendingPodGroup {
  /** The same for the same kind in every round, and in every pool that it needs addresses of. */
  readonly key: string;
  readonly pods: number;
  /** How many addresses of the pool each of them needs. */
  readonly requested: number;
  /** Nodes that they may run on. */
  readonly nodes: readonly string[];
  /** The node that is given what they need of another pool: a pod can be bound only where it finds all. */
  readonly prefers?: string | undefined;
}

/** What a kind is offered. Times are the clock's ms. */
export interface Offer {
  readonly node?: string;
  /** When the node was chosen. */
  readonly at: number;
  /** Since when a pod of the kind could be bound there, and nothing of it was used. */
  readonly since?: number;
  /** What the node had then. */
  readonly share: number;
  /** By node: when it was found that no pod of the kind uses what is there. The scheduler has reasons that are not looked at here. */
  readonly declined: ReadonlyMap<string, number>;
}

export interface Placement {
  /** What nodes need for pods that wait: at least. */
  readonly needed: ReadonlyMap<string, number>;
  /** By the kind's key: the node. */
  readonly placed: ReadonlyMap<string, string>;
  readonly offers: ReadonlyMap<string, Offer>;
}

export interface PlacementInput {
  readonly budget: number;
  /** What pods that come now find on each node. */
  readonly usable: ReadonlyMap<string, number>;
  readonly waiting: readonly PendingPodGroup[];
  /** Keys of kinds that wait, too, and get nothing in this round: what they have declined is not forgotten. */
  readonly skippedGroups?: ReadonlySet<string>;
  readonly offers: ReadonlyMap<string, Offer>;
  readonly now: number;
  /** For how long a kind may leave what it is offered unused. */
  readonly offerTimeoutMs: number;
}

/** What is offered comes late where others have to lose it first; after so many times the patience it is taken not to come at all. */
const LATE_FACTOR = 4;
const NONE_DECLINED: ReadonlyMap<string, number> = new Map();
const NO_GROUPS: ReadonlySet<string> = new Set();

/**
 * Chooses for waiting pods the nodes that are to have what they need. Each kind keeps its node until pods of it are bound, or have declined
 * it by staying away for long; then it comes after all other kinds, and tries the node next that it has never declined, or longest ago. So
 * each kind has its turn on each node on which it may run, and none keeps the last address from those that could use it.
 */
export function placePendingPods(input: PlacementInput): Placement {
  const { waiting, budget, skippedGroups = NO_GROUPS, now } = input;
  const kinds = waiting.filter(({ requested, nodes }) => requested <= budget && nodes.length > 0);
  const offers = new Map(kinds.map((kind) => [kind.key, reviewOffer(kind, input)]));
  for (const [key, { declined }] of input.offers)
    if (skippedGroups.has(key)) offers.set(key, { at: now, share: 0, declined });
  const placement = { needed: new Map<string, number>(), placed: new Map<string, string>(), offers };
  const inTurn = [...kinds].sort((a, b) => lastDeclinedAt(offers.get(a.key)) - lastDeclinedAt(offers.get(b.key)));
  let left = budget;
  const give = (kind: PendingPodGroup, node: string, pods: number) => {
    const amount = Math.min(pods, Math.floor(left / kind.requested)) * kind.requested;
    left -= amount;
    placement.needed.set(node, (placement.needed.get(node) ?? 0) + amount);
  };
  for (const kind of inTurn) {
    if (kind.requested > left) {
      withdrawOffer(offers, kind);
      // what is left is kept for it: kinds that need less would take it for ever, one after the other
      left = 0;
      continue;
    }
    const node = offers.get(kind.key)?.node ?? chooseNode(kind, input, offers);
    placement.placed.set(kind.key, node);
    give(kind, node, 1);
  }
  // one of each kind comes before many of one
  for (const kind of inTurn) {
    const node = placement.placed.get(kind.key);
    if (node !== undefined) give(kind, node, kind.pods - 1);
  }
  return placement;
}

/** Is what the kind was offered still to be left to it? */
function reviewOffer(kind: PendingPodGroup, { offers, usable, now, offerTimeoutMs }: PlacementInput): Offer {
  const before = offers.get(kind.key) ?? { at: now, share: 0, declined: NONE_DECLINED };
  const { node, declined } = before;
  if (node === undefined || !kind.nodes.includes(node)) return { at: now, share: 0, declined };
  const offer = refreshOffer(before, { share: usable.get(node) ?? 0, requested: kind.requested, now });
  const isDeclined = offer.since !== undefined && now - offer.since >= offerTimeoutMs;
  const isLate = now - offer.at >= LATE_FACTOR * offerTimeoutMs;
  return isDeclined || isLate ? { at: now, share: 0, declined: new Map(declined).set(node, now) } : offer;
}

function refreshOffer(
  before: Offer,
  { share, requested, now }: { share: number; requested: number; now: number },
): Offer {
  // somebody has used of it: it is good for others, too
  const fresh = share < before.share;
  const { since = now, ...kept } = before;
  const offer = { ...kept, share, at: fresh ? now : before.at };
  return share < requested ? offer : { ...offer, since: fresh ? now : since };
}

/** Nothing is left for it: it has not declined anything. */
function withdrawOffer(offers: Map<string, Offer>, { key }: PendingPodGroup): void {
  const { at = 0, declined = NONE_DECLINED } = offers.get(key) ?? {};
  offers.set(key, { at, share: 0, declined });
}

function chooseNode(
  { key, requested, nodes, prefers }: PendingPodGroup,
  { usable, now }: PlacementInput,
  offers: Map<string, Offer>,
): string {
  const { declined = NONE_DECLINED } = offers.get(key) ?? {};
  const since = (node: string) => declined.get(node) ?? 0;
  const lacks = (node: string) => ((usable.get(node) ?? 0) >= requested ? 0 : 1);
  const [first = ''] = [...nodes].sort((a, b) => since(a) - since(b) || lacks(a) - lacks(b) || (a < b ? -1 : 1));
  const node = prefers !== undefined && nodes.includes(prefers) ? prefers : first;
  offers.set(key, { node, at: now, share: usable.get(node) ?? 0, declined });
  return node;
}

/** Those that have something keep it; then those that have declined nothing, or nothing lately. */
function lastDeclinedAt(offer: Offer | undefined): number {
  if (offer?.node !== undefined) return -1;
  return Math.max(0, ...(offer?.declined.values() ?? []));
}
