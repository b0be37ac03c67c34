import { type Offer, type PendingPodGroup, type Placement, placePendingPods } from './offers.js';

/** The most addresses that a node shows as free. Larger IPv6 pools do not run out. */
export const MAX_SHARE = 10_000;
/** A pool with this many addresses for each node keeps some back, so that not every deleted pod causes a write. */
const PLENTY_PER_NODE = 8;
const KEPT_BACK_DIVISOR = 8;

/** A node that may show a pool. Counts are of addresses in one family. */
export interface ShareNode {
  readonly name: string;
  /** Addresses requested by bound pods that are not being deleted. */
  readonly requested: number;
  /** Addresses requested by pods that are being deleted. The scheduler still counts them. */
  readonly leavingRequests: number;
  /** The value that the node shows or will show after the last write; absent if none. */
  readonly expected?: number | undefined;
  /** The highest value that a scheduler may see. */
  readonly highest: number;
  /** Free addresses in the blocks of the node, which no other node uses. */
  readonly ownFree: number;
  /** Whether pods without tolerations can run on the node. */
  readonly isUntainted: boolean;
}

export interface ShareInput {
  /** Free addresses that no bound pod waits for. The sum of all shares never exceeds it. */
  readonly budget: number;
  readonly nodes: readonly ShareNode[];
  /** Addresses that a scheduler may still see as free on nodes that are no longer eligible. */
  readonly shownElsewhere: number;
  /** Whether unused addresses are distributed even if no node needs them. */
  readonly isRebalanceDue: boolean;
  readonly waiting: readonly PendingPodGroup[];
  /** Keys of groups that were not examined in this round. */
  readonly skippedGroups?: ReadonlySet<string>;
  /** The offers of the last round. */
  readonly offers: ReadonlyMap<string, Offer>;
  readonly now: number;
  /** How long a node keeps the addresses for pending pods before another node gets them. */
  readonly offerTimeoutMs: number;
}

export interface SharePlan {
  /** The new values of nodes whose value changes. */
  readonly capacities: ReadonlyMap<string, number>;
  readonly offers: ReadonlyMap<string, Offer>;
  /** The chosen node by key of the group. */
  readonly nodeByGroup: ReadonlyMap<string, string>;
  /** Whether a share is to be raised once schedulers see that others were reduced. */
  readonly isUnfinished: boolean;
}

/**
 * Divides the free addresses of a pool among nodes. A node shows the addresses that its pods request, plus its share. The addresses that
 * schedulers may see as free on all nodes never exceed the free addresses: a share grows only after others were reduced. Shares do not change
 * without need: a pod that is bound reduces the share of its node by itself.
 */
export function planShares(input: ShareInput): SharePlan {
  const budget = Math.max(0, input.budget);
  const shares = new Map(input.nodes.map((node) => [node.name, shareOf(node)]));
  const usable = new Map(input.nodes.map((node) => [node.name, shareOf(node) - node.leavingRequests]));
  const placement = placePendingPods({ ...input, budget, usable });
  const wanted = wantedShares({ ...input, budget }, shares, placement);
  return {
    ...plannedWrites(input, budget, { wanted, placement }),
    offers: placement.offers,
    nodeByGroup: placement.nodeByGroup,
  };
}

function shareOf({ expected = 0, requested }: ShareNode): number {
  return Math.max(0, expected - requested);
}

/** The share that each node should have if all writes took effect at once. */
function wantedShares(
  { budget, nodes, isRebalanceDue }: Pick<ShareInput, 'budget' | 'nodes' | 'isRebalanceDue'>,
  shares: ReadonlyMap<string, number>,
  { neededByNode }: Placement,
): ReadonlyMap<string, number> {
  const wanted = new Map(
    nodes.map(({ name, ownFree }) => [
      name,
      Math.min(MAX_SHARE, Math.max(shares.get(name) ?? 0, neededByNode.get(name) ?? 0, ownFree)),
    ]),
  );
  const owns = new Map(nodes.map(({ name, ownFree }) => [name, Math.min(ownFree, MAX_SHARE)]));
  const ordinary = new Set(nodes.flatMap(({ name, isUntainted: is }) => (is ? [name] : [])));
  const isOrdinary = (name: string) => ordinary.has(name);
  const kept = (name: string) => Math.max(neededByNode.get(name) ?? 0, owns.get(name) ?? 0);
  const leaving = new Map(nodes.map(({ name, leavingRequests: count }) => [name, count]));
  const usable = (name: string) => (shares.get(name) ?? 0) - (leaving.get(name) ?? 0);
  // reduces first addresses of pods that are being deleted, then tainted nodes, then others; blocks and offers last
  reduceShares(wanted, budget, {
    floor: (name) => Math.max(kept(name), usable(name)),
    isReduced: (name) => (leaving.get(name) ?? 0) > 0,
  });
  reduceShares(wanted, budget, { floor: kept, isReduced: (name) => !isOrdinary(name) });
  reduceShares(wanted, budget, { floor: kept, isReduced: isOrdinary });
  reduceShares(wanted, budget, { floor: (name) => neededByNode.get(name) ?? 0, isReduced: () => true });
  topUp(wanted, budget, {
    floor: kept,
    isServed: ordinary.size === 0 ? () => true : isOrdinary,
    isDue: isRebalanceDue,
  });
  return wanted;
}

interface TopUpOptions {
  floor: (name: string) => number;
  isServed: (name: string) => boolean;
  isDue: boolean;
}

/** Raises small shares to the average, from unused addresses or else from larger shares. */
function topUp(wanted: Map<string, number>, budget: number, { floor, isServed, isDue }: TopUpOptions): void {
  const served = [...wanted.keys()].filter(isServed);
  if (served.length === 0) return;
  const keptBack = budget >= PLENTY_PER_NODE * served.length ? Math.floor(budget / KEPT_BACK_DIVISOR) : 0;
  const even = Math.min(MAX_SHARE, Math.floor((budget - keptBack) / served.length));
  const low = served.filter((name) => 2 * (wanted.get(name) ?? 0) < even);
  const missing = low.reduce((sum, name) => sum + even - (wanted.get(name) ?? 0), 0);
  const sum = () => [...wanted.values()].reduce((total, share) => total + share, 0);
  if (missing > budget - sum()) {
    const richest = (name: string) => Math.max(floor(name), even);
    reduceShares(wanted, budget - missing, { floor: richest, isReduced: () => true });
  }
  if (low.length > 0) raiseShares(wanted, budget - sum(), { names: low, ceiling: keptBack > 0 ? even : even + 1 });
  // few addresses, and nodes show less than half of them
  const isSparse = 2 * sum() < budget && even < MAX_SHARE;
  if (isSparse || (isDue && keptBack === 0)) raiseShares(wanted, budget - sum(), { names: served, ceiling: even + 1 });
}

/** Writes lower values at once, and higher values only as far as the sum that schedulers may see allows. */
function plannedWrites(
  { nodes, shownElsewhere }: ShareInput,
  budget: number,
  { wanted, placement }: { wanted: ReadonlyMap<string, number>; placement: Placement },
): Pick<SharePlan, 'capacities' | 'isUnfinished'> {
  const caps = new Map<string, number>();
  const believed = nodes.reduce((sum, { highest, requested }) => sum + Math.max(0, highest - requested), 0);
  let slack = budget - shownElsewhere - believed;
  let unfinished = false;
  const urgentFirst = [...nodes].sort((a, b) => urgencyOf(b, placement) - urgencyOf(a, placement));
  for (const node of urgentFirst) {
    const { name, requested, expected, highest } = node;
    const cap = requested + (wanted.get(name) ?? 0);
    if (expected !== undefined && isSettled(node, cap)) continue;
    const open = Math.max(0, highest - requested);
    const more = Math.max(0, cap - requested - open);
    const granted = Math.max(0, Math.min(more, slack));
    slack -= granted;
    if (granted < more) unfinished = true;
    const allowed = cap - (more - granted);
    if (allowed !== expected) caps.set(name, allowed);
  }
  return { capacities: caps, isUnfinished: unfinished };
}

/** Whether the node needs no write. A node that shows less than its pods request has no free addresses anyway. */
function isSettled({ expected = 0, requested }: ShareNode, cap: number): boolean {
  return expected === cap || (cap === requested && expected < requested);
}

function urgencyOf({ name }: ShareNode, { neededByNode }: Placement): number {
  return neededByNode.get(name) ?? 0;
}

/** Levels shares: reduces the largest and raises the smallest. */

interface ReduceOptions {
  /** A share is not reduced below this value. */
  floor: (name: string) => number;
  isReduced: (name: string) => boolean;
}

/** Reduces shares until their sum is at most the limit, if their floors allow it. Reduces first the shares that are most above their floor. */
function reduceShares(shares: Map<string, number>, limit: number, { floor, isReduced }: ReduceOptions): void {
  let excess = [...shares.values()].reduce((sum, share) => sum + share, 0) - limit;
  if (excess <= 0) return;
  const room = new Map<string, number>();
  for (const [name, share] of shares) if (isReduced(name) && share > floor(name)) room.set(name, share - floor(name));
  const level = lowestLevel([...room.values()], excess);
  // first everything above the level, then single addresses
  for (const [name, above] of largestFirst(room)) {
    const less = Math.min(excess, Math.max(0, above - level));
    shares.set(name, (shares.get(name) ?? 0) - less);
    room.set(name, above - less);
    excess -= less;
  }
  for (const [name, above] of largestFirst(room)) {
    if (excess <= 0) return;
    const less = Math.min(excess, above, 1);
    shares.set(name, (shares.get(name) ?? 0) - less);
    excess -= less;
  }
}

/** @returns the lowest level to which all values can be reduced without removing more than the excess */
function lowestLevel(values: readonly number[], excess: number): number {
  let low = 0;
  let high = Math.max(0, ...values);
  const above = (level: number) => values.reduce((sum, value) => sum + Math.max(0, value - level), 0);
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (above(middle) <= excess) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Distributes the amount among the named shares, to the smallest first, up to a ceiling. */
function raiseShares(
  shares: Map<string, number>,
  amount: number,
  { names, ceiling }: { names: readonly string[]; ceiling: number },
): void {
  let left = amount;
  if (left <= 0) return;
  const given = new Map(names.map((name) => [name, shares.get(name) ?? 0]));
  const level = highestLevel([...given.values()], left, ceiling);
  for (const [name, share] of [...given].sort(bySmallestShare)) {
    const more = Math.min(left, Math.max(0, Math.min(level, ceiling) - share));
    given.set(name, share + more);
    left -= more;
  }
  for (const [name, share] of [...given].sort(bySmallestShare)) {
    if (left <= 0 || share >= ceiling) break;
    given.set(name, share + 1);
    left -= 1;
  }
  for (const [name, share] of given) shares.set(name, share);
}

/** @returns the highest level to which all values can be raised with the amount */
function highestLevel(values: readonly number[], amount: number, ceiling: number): number {
  let low = 0;
  let high = ceiling;
  const below = (level: number) => values.reduce((sum, value) => sum + Math.max(0, level - value), 0);
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (below(middle) <= amount) low = middle;
    else high = middle - 1;
  }
  return low;
}

function largestFirst(room: ReadonlyMap<string, number>): [string, number][] {
  return [...room].sort(([aName, a], [bName, b]) => b - a || (aName < bName ? -1 : 1));
}

function bySmallestShare([aName, a]: [string, number], [bName, b]: [string, number]): number {
  return a - b || (aName < bName ? -1 : 1);
}
