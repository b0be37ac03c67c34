/** What is counted in one part of a run. */
export class Counters {
  readonly tries: number[] = [];
  /** Of an ADD that got an address, in ms. */
  readonly latencies: number[] = [];
  /** ADDs that were told to try again. */
  refused = 0;
  creates = 0;
  /** Creates that met AlreadyExists. */
  conflicts = 0;
  /** Writes of leases that free an address: released, deleted. */
  frees = 0;
  /** Of blocks, by whomever. */
  blockWrites = 0;
  claims = 0;
  claimConflicts = 0;
  /** ADDs that got an address of a block of the node. */
  fromBlocks = 0;
  /** Events that watches of leases of the whole address space tell agents, and objects of their first lists. */
  spaceEvents = 0;
  spaceListed = 0;
  /** Events of the leases and blocks of the agent's own node. */
  ownEvents = 0;
  /** Agents that follow the whole address space, at the end. */
  following = 0;
  /** In virtual ms. */
  lasted = 0;

  get adds(): number {
    return this.latencies.length;
  }
}
