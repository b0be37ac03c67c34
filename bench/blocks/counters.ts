/** Counters of one phase. */
export class Counters {
  readonly tries: number[] = [];
  /** Latencies in ms of ADDs that got an address. */
  readonly latencies: number[] = [];
  refused = 0;
  creates = 0;
  conflicts = 0;
  /** Reads of leases before random picks. */
  reads = 0;
  /** Writes that release or delete a lease. */
  frees = 0;
  blockWrites = 0;
  claims = 0;
  claimConflicts = 0;
  /** ADDs that got an address of a block of the node. */
  fromBlocks = 0;
  /** Events of watches of the whole address space, and objects of their first lists. */
  spaceEvents = 0;
  spaceListed = 0;
  /** Events of the leases and blocks of the agent's own node. */
  ownEvents = 0;
  /** Agents that watch the whole address space at the end. */
  following = 0;
  /** In virtual ms. */
  lasted = 0;

  get adds(): number {
    return this.latencies.length;
  }
}
