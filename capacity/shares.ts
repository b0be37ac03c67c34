import { reduceShares, raiseShares } from './share-leveling.js';
import { type Offer, type Placement, type PendingPodGroup, placePendingPods } from './offers.js';

/** More than this is never shown as free: whoever has a big IPv6 network does not run out. */
export const MAX_SHARE = 10_000;
/** A pool that has this many addresses for each node keeps some back, so that not every pod that ends makes somebody write. */
const PLENTY_PER_NODE = 8;
const KEPT_BACK_DIVISOR = 8;

/** A node that may show a pool. Counts are of addresses that each interface needs one of. */
export interface ShareNode {
  readonly name: string;
  /** What pods that are bound to it, and stay, ask for. */
  readonly requested: number;
  /** What pods ask for that are being deleted: to a scheduler they are still there. */
  readonly leaving: number;
  /** What it shows, or was told last to show; absent: nothing. */
  readonly shown?: number | undefined;
  /** The most that a scheduler may believe that it shows. */
  readonly most: number;
  /** Free in the blocks that it is lent, and for nobody else. */
  readonly own: number;
  /** Pods that ask for nothing special may run there. */
  readonly ordinary: boolean;
}

export interface ShareInput {
  /** Free addresses that nobody waits for whose pod is bound: all shares together are never more. */
  readonly budget: number;
  readonly nodes: readonly ShareNode[];
  /** What a scheduler may believe of nodes that are not among these any more. */
  readonly elsewhere: number;
  /** Shares have not been made even for long: what nobody has is given out though nobody needs it yet. */
  readonly isDue: boolean;
  /** Pods that no node had enough for. */
  readonly waiting: readonly PendingPodGroup[];
  /** Keys of kinds of such pods that get nothing in this round. */
  readonly skippedGroups?: ReadonlySet<string>;
  /** What this function made of the last round. */
  readonly offers: ReadonlyMap<string, Offer>;
  readonly now: number;
  /** For how long a node is given what a waiting pod needs before another node is. */
  readonly offerTimeoutMs: number;
}

export interface SharePlan {
  /** What nodes shall show that show something else. */
  readonly caps: ReadonlyMap<string, number>;
  readonly offers: ReadonlyMap<string, Offer>;
  /** By the key of a kind: the node that is given what it needs. */
  readonly placed: ReadonlyMap<string, string>;
  /** Somebody is to get more, once others are known to have less. */
  readonly unfinished: boolean;
}

/**
 * Shares the free addresses of a pool out among nodes: a node shows what is requested on it already, and its share. What schedulers may
 * believe is free, on all nodes together, is never made more than what is free: a share grows only by what others are known to have lost.
 * Shares stay as they are while that does no harm: a pod that is bound makes them smaller by itself.
 */
export function planShares(input: ShareInput): SharePlan {
  const budget = Math.max(0, input.budget);
  const shares = new Map(input.nodes.map((node) => [node.name, shareOf(node)]));
  const usable = new Map(input.nodes.map((node) => [node.name, shareOf(node) - node.leaving]));
  const placement = placePendingPods({ ...input, budget, usable });
  const wanted = wantedShares({ ...input, budget }, shares, placement);
  return { ...plannedWrites(input, budget, { wanted, placement }), offers: placement.offers, placed: placement.placed };
}

function shareOf({ shown = 0, requested }: ShareNode): number {
  return Math.max(0, shown - requested);
}

/** What each node should have, if all could be written at once. */
function wantedShares(
  { budget, nodes, isDue }: Pick<ShareInput, 'budget' | 'nodes' | 'isDue'>,
  shares: ReadonlyMap<string, number>,
  { needed }: Placement,
): ReadonlyMap<string, number> {
  const wanted = new Map(
    nodes.map(({ name, own }) => [
      name,
      Math.min(MAX_SHARE, Math.max(shares.get(name) ?? 0, needed.get(name) ?? 0, own)),
    ]),
  );
  const owns = new Map(nodes.map(({ name, own }) => [name, Math.min(own, MAX_SHARE)]));
  const ordinary = new Set(nodes.flatMap(({ name, ordinary: is }) => (is ? [name] : [])));
  const isOrdinary = (name: string) => ordinary.has(name);
  const kept = (name: string) => Math.max(needed.get(name) ?? 0, owns.get(name) ?? 0);
  const leaving = new Map(nodes.map(({ name, leaving: count }) => [name, count]));
  const usable = (name: string) => (shares.get(name) ?? 0) - (leaving.get(name) ?? 0);
  // what nobody can use yet first, then where few can run; what a block holds, and what a pod waits for, last
  reduceShares(wanted, budget, {
    floor: (name) => Math.max(kept(name), usable(name)),
    isReduced: (name) => (leaving.get(name) ?? 0) > 0,
  });
  reduceShares(wanted, budget, { floor: kept, isReduced: (name) => !isOrdinary(name) });
  reduceShares(wanted, budget, { floor: kept, isReduced: isOrdinary });
  reduceShares(wanted, budget, { floor: (name) => needed.get(name) ?? 0, isReduced: () => true });
  topUp(wanted, budget, { floor: kept, isServed: ordinary.size === 0 ? () => true : isOrdinary, isDue });
  return wanted;
}

interface TopUpOptions {
  floor: (name: string) => number;
  isServed: (name: string) => boolean;
  isDue: boolean;
}

/** Nodes that run low get an even share again: of what nobody has, else of what others have more of. */
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
  // few addresses, and most of them nowhere to be seen
  const isSparse = 2 * sum() < budget && even < MAX_SHARE;
  if (isSparse || (isDue && keptBack === 0)) raiseShares(wanted, budget - sum(), { names: served, ceiling: even + 1 });
}

/** Less is written at once, more only as far as all that may be believed allows. */
function plannedWrites(
  { nodes, elsewhere }: ShareInput,
  budget: number,
  { wanted, placement }: { wanted: ReadonlyMap<string, number>; placement: Placement },
): Pick<SharePlan, 'caps' | 'unfinished'> {
  const caps = new Map<string, number>();
  const believed = nodes.reduce((sum, { most, requested }) => sum + Math.max(0, most - requested), 0);
  let slack = budget - elsewhere - believed;
  let unfinished = false;
  const urgentFirst = [...nodes].sort((a, b) => urgencyOf(b, placement) - urgencyOf(a, placement));
  for (const node of urgentFirst) {
    const { name, requested, shown, most } = node;
    const cap = requested + (wanted.get(name) ?? 0);
    if (shown !== undefined && isSettled(node, cap)) continue;
    const open = Math.max(0, most - requested);
    const more = Math.max(0, cap - requested - open);
    const granted = Math.max(0, Math.min(more, slack));
    slack -= granted;
    if (granted < more) unfinished = true;
    const allowed = cap - (more - granted);
    if (allowed !== shown) caps.set(name, allowed);
  }
  return { caps, unfinished };
}

/** A node that shows less than what is requested on it gives nobody anything: it need not be told so again. */
function isSettled({ shown = 0, requested }: ShareNode, cap: number): boolean {
  return shown === cap || (cap === requested && shown < requested);
}

function urgencyOf({ name }: ShareNode, { needed }: Placement): number {
  return needed.get(name) ?? 0;
}
