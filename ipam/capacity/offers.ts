/** A pod that no node had enough for. */
export interface WaitingPod {
  readonly uid: string;
  /** How many addresses of the pool it needs. */
  readonly requested: number;
  /** Nodes that it may run on. */
  readonly nodes: readonly string[];
  /** The node that is given what it needs of another pool: it can be bound only where it finds all. */
  readonly prefers?: string | undefined;
}

/** What is known of a node's share and waiting pods that could have used it. Times are milliseconds since the epoch. */
export interface Offer {
  /** Since when it has a share and nothing of it was used. */
  readonly since?: number;
  readonly share: number;
  /** When it was found that no waiting pod uses it: the scheduler has reasons that are not looked at here. */
  readonly declinedAt?: number;
}

export interface Placement {
  /** What nodes need for pods that wait: at least. */
  readonly needed: ReadonlyMap<string, number>;
  readonly placed: ReadonlyMap<string, string>;
  readonly offers: ReadonlyMap<string, Offer>;
}

export interface PlacementInput {
  readonly budget: number;
  readonly shares: ReadonlyMap<string, number>;
  readonly waiting: readonly WaitingPod[];
  readonly offers: ReadonlyMap<string, Offer>;
  readonly now: number;
  readonly patienceMs: number;
}

/**
 * Chooses for waiting pods the nodes that are to have what they need: first those that nobody has declined, then the one that was declined
 * longest ago. So each node on which a pod may run has its turn, and none of them keeps the last address from a pod that could use it elsewhere.
 */
export function place(input: PlacementInput): Placement {
  const offers = look(input);
  const needed = new Map<string, number>();
  const placed = new Map<string, string>();
  let left = input.budget;
  const choices = input.waiting
    .filter(({ requested, nodes }) => requested <= input.budget && nodes.length > 0)
    .map((pod) => ({ pod, node: bestNode(pod, offers, input.shares) }))
    .sort((a, b) => declined(offers, a.node) - declined(offers, b.node));
  for (const { pod, node } of choices) {
    if (pod.requested > left) continue;
    left -= pod.requested;
    needed.set(node, (needed.get(node) ?? 0) + pod.requested);
    placed.set(pod.uid, node);
  }
  return { needed, placed, offers };
}

function look({ shares, waiting, offers, now, patienceMs }: PlacementInput): Map<string, Offer> {
  const awaited = new Map<string, number>();
  for (const { requested, nodes } of waiting) {
    for (const node of nodes) awaited.set(node, Math.min(requested, awaited.get(node) ?? requested));
  }
  return new Map(
    [...shares].map(([node, share]) => {
      const before = offers.get(node);
      const least = awaited.get(node);
      return [node, next(before, { share, now, isAwaited: least !== undefined && share >= least, patienceMs })];
    }),
  );
}

interface Sight {
  share: number;
  now: number;
  /** It is enough for a pod that waits. */
  isAwaited: boolean;
  patienceMs: number;
}

function next(before: Offer | undefined, { share, now, isAwaited, patienceMs }: Sight): Offer {
  const declinedAt = before?.declinedAt;
  const note = { share, ...(declinedAt !== undefined && { declinedAt }) };
  if (!isAwaited) return note;
  // somebody has used of it: it is good for others, too
  if (before !== undefined && share < before.share) return { share, since: now };
  const since = before?.since ?? now;
  return now - since < patienceMs ? { ...note, since } : { share, since: now, declinedAt: now };
}

function bestNode(
  { requested, nodes, prefers }: WaitingPod,
  offers: ReadonlyMap<string, Offer>,
  shares: PlacementInput['shares'],
): string {
  if (prefers !== undefined && nodes.includes(prefers)) return prefers;
  const hasEnough = (node: string) => ((shares.get(node) ?? 0) >= requested ? 0 : 1);
  const [best = ''] = [...nodes].sort(
    (a, b) => declined(offers, a) - declined(offers, b) || hasEnough(a) - hasEnough(b) || (a < b ? -1 : 1),
  );
  return best;
}

function declined(offers: ReadonlyMap<string, Offer>, node: string): number {
  return offers.get(node)?.declinedAt ?? 0;
}
