import { setMaxListeners } from 'node:events';
import { type AddressBlock, BlockRelease } from '../../../api/address-block.js';
import { type BlockRecord, isUsable, readBlock } from '../../../addressing/block/block.js';
import { type LeaseRecord, isHeldByPod } from '../../../addressing/lease/lease.js';
import type { Client } from '../../../kube/client.js';
import { type Clock, type Random, WakeableSleep } from '../../../kube/clock.js';
import { isConflict, isNotFound, messageOf } from '../../../kube/errors.js';
import { forEachParallel } from '../../../kube/run-in-slices.js';
import type { Informer } from '../../../kube/informers/informer.js';
import type { Logger } from '../../../kube/log.js';
import { ADDRESS_BLOCKS } from '../../../kube/resources.js';
import { abortable } from '../../../kube/transport/deadline.js';
import type { InformerRegistry, WatchSpec } from '../../../kube/informers/informers.js';
import { type LeaseListener, type NodeLeases, nodeFieldSelector } from '../node-leases.js';
import { BlockCandidates } from './block-candidates.js';
import { type AnswerOutcome, LentBlocks } from './lent-blocks.js';
import type { NodeBlockMetrics } from '../metrics.js';

interface NodeBlocksDeps {
  readonly informers: Pick<InformerRegistry, 'get'>;
  readonly client: Pick<Client, 'patch'>;
  /** Must not have any lease yet. */
  readonly own: NodeLeases;
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: NodeBlockMetrics;
}

/** Interval between rounds of answers that are not urgent. */
export const ANSWER_INTERVAL_MS = 15_000;
/** Number of parallel writes of answers. */
const WRITERS = 4;
const WRITE_MS = 10_000;
/** Longest sleep between two checks for blocks to answer. */
const MAX_SLEEP_MS = 60 * 60_000;

/** The blocks that this node is lent: watches them and their leases, lets ADDs pick from them, and answers requests to release them. */
export class NodeBlocks {
  /** Used by lease writers to mark addresses that are being written. */
  readonly uses: Pick<LentBlocks, 'addUse' | 'removeUse'>;
  readonly #deps: NodeBlocksDeps;
  readonly #lent = new LentBlocks(ANSWER_INTERVAL_MS);
  /** The addresses that an ADD may try. */
  readonly candidates: BlockCandidates;
  readonly #informer: Pick<Informer<AddressBlock, BlockRecord>, 'hasSynced' | 'synced'>;
  readonly #stop = new AbortController();
  readonly #sleep: WakeableSleep;
  #running: Promise<void> | undefined;

  constructor(deps: NodeBlocksDeps) {
    setMaxListeners(0, this.#stop.signal);
    this.#deps = deps;
    this.candidates = new BlockCandidates(this.#lent, deps);
    this.#sleep = new WakeableSleep(deps.clock);
    this.uses = this.#lent;
    const watched: WatchSpec<AddressBlock, BlockRecord> = {
      resource: ADDRESS_BLOCKS,
      fieldSelector: nodeFieldSelector(deps.nodeName),
      transform: readBlock,
      // without the CRD there are no blocks
      optional: true,
    };
    const feed = deps.informers.get(watched);
    feed.onChange((change) => {
      this.#lent.observe(change);
      deps.metrics.lent(countsOf(this.#lent.all()));
      this.#sleep.wake();
    });
    this.#informer = feed;
    deps.own.setListener(this.#listener());
  }

  /** Whether the first list has arrived. It is consistent, so it includes the answers of earlier processes of this agent. */
  get hasSynced(): boolean {
    return this.#informer.hasSynced;
  }

  synced(): Promise<void> {
    return this.#informer.synced();
  }

  start(): void {
    this.#running ??= this.#answerForEver(this.#stop.signal);
  }

  /** Resolves when no more answers are written. */
  async stop(): Promise<void> {
    this.#stop.abort();
    this.#sleep.wake();
    await this.#running;
  }

  #listener(): LeaseListener {
    return {
      changed: (before, after) => {
        if (after !== undefined) this.#addLease(after);
        else if (before !== undefined) this.#removeLease(before);
      },
      uncertain: (key, request) => this.#lent.addUse(`uncertain ${key}`, request),
      resolved: (key) => this.#lent.removeUse(`uncertain ${key}`),
    };
  }

  #addLease(lease: LeaseRecord): void {
    const { metadata, addressSpace, address } = lease;
    this.candidates.addLease(addressSpace, address);
    if (isHeldByPod(lease)) this.#lent.addUse(`lease ${metadata.name}`, lease);
    else this.#lent.removeUse(`lease ${metadata.name}`);
  }

  #removeLease({ metadata, addressSpace, address }: LeaseRecord): void {
    this.candidates.removeLease(addressSpace, address);
    this.#lent.removeUse(`lease ${metadata.name}`);
  }

  async #answerForEver(signal: AbortSignal): Promise<void> {
    const { own, clock, log } = this.#deps;
    try {
      await abortable(own.synced(), signal);
    } catch {
      return; // stopped before its leases are known
    }
    this.#lent.setLeasesKnown();
    while (!signal.aborted) {
      try {
        await this.#answerAll(signal);
      } catch (error) {
        log.error({ err: error }, `cannot answer requests to release blocks: ${messageOf(error)}`);
      }
      const nextAt = this.#lent.nextAnswerAt() ?? Number.POSITIVE_INFINITY;
      await this.#sleep.sleep(Math.min(Math.max(nextAt - clock.now(), 0), MAX_SLEEP_MS));
    }
  }

  async #answerAll(signal: AbortSignal): Promise<void> {
    const due = this.#lent.answersDue(this.#deps.clock.now());
    await forEachParallel(due, WRITERS, (block) => this.#answer(block, signal), signal);
  }

  async #answer(block: BlockRecord, signal: AbortSignal): Promise<void> {
    const { client, clock, log, metrics } = this.#deps;
    const write = this.#lent.answer(block, clock.now());
    if (write === undefined) return;
    const { name } = write;
    const { release } = (write.body as { status: { release: string } }).status;
    const options = { subresource: 'status', signal, deadlineMs: WRITE_MS };
    let outcome: AnswerOutcome = 'unknown';
    try {
      await client.patch(ADDRESS_BLOCKS, { name }, { type: 'merge', body: write.body }, options);
      outcome = 'done';
      log.info({ block: name, reason: block.reason, answer: release }, 'answered the request to release a block');
    } catch (error) {
      if (isConflict(error) || isNotFound(error)) outcome = 'lost';
      else if (!signal.aborted)
        log.warn(
          { block: name, answer: release, err: error },
          `cannot answer the request to release a block, retrying: ${messageOf(error)}`,
        );
    } finally {
      this.#lent.answered(block, outcome, clock.now());
      metrics.answered(release, outcome);
    }
  }
}

function countsOf(blocks: readonly BlockRecord[]): { usable: number; marked: number; other: number } {
  const usable = blocks.filter(isUsable).length;
  const asked: readonly (BlockRecord['release'] | undefined)[] = [BlockRelease.Marked, BlockRelease.Ready];
  const marked = blocks.filter((block) => !isUsable(block) && asked.includes(block.release)).length;
  return { usable, marked, other: blocks.length - usable - marked };
}
