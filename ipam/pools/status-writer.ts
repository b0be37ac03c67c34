import type { AddressPool, AddressPoolStatus } from '../../api/address-pool.js';
import type { Condition } from '../../api/meta.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { ADDRESS_POOLS } from '../../kube/resources.js';
import { isNewer } from '../../kube/resource-version.js';
import { patchTo } from './merge.js';
import { type Counts, type Finding, stamp } from './status.js';

/** Between two writes of one pool's status. */
const INTERVAL_MS = 1_000;

export interface WantedStatus extends Counts {
  observedGeneration?: number;
  findings: readonly Finding[];
}

interface Last {
  uid: string | undefined;
  /** When it was sent, in milliseconds since the epoch. */
  at: number;
  /** What was written last, and the object's version since; absent where the write failed. */
  stored?: { status: AddressPoolStatus; resourceVersion: string };
}

/** Writes the status of pools: at once, but no pool's more than once a second, and never what is there already. */
export class StatusWriter {
  readonly #client: Pick<Client, 'patch'>;
  readonly #clock: Pick<Clock, 'now'>;
  readonly #last = new Map<string, Last>();

  constructor(client: Pick<Client, 'patch'>, clock: Pick<Clock, 'now'>) {
    this.#client = client;
    this.#clock = clock;
  }

  /** Milliseconds until the pool's status may be written again: before, there is no sense in counting. */
  dueIn({ metadata: { name, uid } }: AddressPool): number {
    const last = this.#last.get(name);
    const inMs = last === undefined || last.uid !== uid ? 0 : last.at + INTERVAL_MS - this.#clock.now();
    // more than that only where the clock was set back
    return inMs > 0 && inMs <= INTERVAL_MS ? inMs : 0;
  }

  /**
   * Call it when {@link dueIn} says so.
   * @returns the conditions whose status or reason is another than before
   * @throws what the write throws
   */
  async write(
    pool: AddressPool,
    wanted: WantedStatus,
    call: CallOptions = {},
  ): Promise<{ turned: readonly Condition[] }> {
    const { name, uid } = pool.metadata;
    const now = this.#clock.now();
    const known = this.#known(pool);
    const { findings, ...rest } = wanted;
    const status: AddressPoolStatus = { ...rest, conditions: stamp(findings, known?.conditions, now) };
    if (known !== undefined && textOf(known) === textOf(status)) return { turned: [] };
    const last = this.#last.get(name);
    const sent: Last = last?.uid === uid && last !== undefined ? { ...last, at: now } : { uid, at: now };
    this.#last.set(name, sent);
    const patch = { type: 'merge' as const, body: { metadata: { uid }, status: statusPatch(known, status) } };
    const { metadata } = await this.#client.patch(ADDRESS_POOLS, { name }, patch, { ...call, subresource: 'status' });
    sent.stored = { status, resourceVersion: metadata.resourceVersion ?? '' };
    return { turned: turned(status.conditions, known?.conditions) };
  }

  forget(name: string): void {
    this.#last.delete(name);
  }

  /** The cache lags behind our own write. */
  #known({ metadata, status }: AddressPool): AddressPoolStatus | undefined {
    const last = this.#last.get(metadata.name);
    if (last?.stored === undefined || last.uid !== metadata.uid) return status;
    return isNewer(metadata.resourceVersion ?? '', last.stored.resourceVersion) ? status : last.stored.status;
  }
}

/** Whether there are blocks, and from where claims are served, may be said no more. */
function statusPatch(before: AddressPoolStatus | undefined, after: AddressPoolStatus): object {
  if (before?.blocks === undefined) return after;
  return { ...after, blocks: after.blocks === undefined ? null : patchTo(before.blocks, after.blocks) };
}

function turned(after: readonly Condition[] = [], before: readonly Condition[] = []): Condition[] {
  return after.filter(({ type, status, reason }) => {
    const known = before.find((condition) => condition.type === type);
    return known?.status !== status || known.reason !== reason;
  });
}

/** Equal where a reader of the status would see no difference. */
function textOf(status: AddressPoolStatus): string {
  const { observedGeneration, capacity, leased, heldByStopped, cooling, free, reserved } = status;
  const { blocks, conditions = [] } = status;
  const told = conditions.map(({ type, status: value, reason, message, lastTransitionTime }) => [
    type,
    value,
    reason,
    message,
    lastTransitionTime,
  ]);
  const lent = blocks && [blocks.total, blocks.full, blocks.lent, blocks.current];
  return JSON.stringify([observedGeneration, capacity, leased, heldByStopped, cooling, free, reserved, lent, told]);
}
