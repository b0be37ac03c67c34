import { setMaxListeners } from 'node:events';
import { backoff } from '../../kube/backoff.js';
import type { Clock, Random } from '../../kube/clock.js';
import { TransportError, messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import type { NoteMetrics } from './metrics.js';
import type { DeletionNotes, Note } from './notes.js';

export interface NoteReplayOptions {
  readonly notes: Pick<DeletionNotes, 'list'>;
  /** Makes a deletion good and removes its note. */
  readonly replay: (note: Note, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: NoteMetrics;
}

const BASE_MS = 1_000;
const MAX_MS = 60_000;
/** The plugin writes notes without telling. */
const LOOK_AGAIN_MS = 30_000;

/** Makes noted deletions good: at the start, soon after each new one, and with back-off while the API server is away. */
export class NoteReplay {
  readonly #options: NoteReplayOptions;
  readonly #stop = new AbortController();
  #nap = new AbortController();
  #hasWork = false;
  #running: Promise<void> | undefined;

  constructor(options: NoteReplayOptions) {
    this.#options = options;
    setMaxListeners(0, this.#stop.signal);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#nap.abort();
    await this.#running;
  }

  /** There is a new note: look soon, but not before the pause after a failure is over. */
  poke(): void {
    this.#hasWork = true;
    this.#nap.abort();
  }

  async #run(): Promise<void> {
    const { clock, random } = this.#options;
    const pause = backoff({ baseMs: BASE_MS, maxMs: MAX_MS, random });
    while (!this.#stop.signal.aborted) {
      this.#hasWork = false;
      const isDone = await this.#replayAll();
      this.#hasWork ||= !isDone;
      if (isDone) {
        pause.reset();
        await this.#rest();
      }
      // what has just failed hardly succeeds at once, nor what has just been noted
      if (this.#hasWork) await clock.sleep(pause.next(), this.#stop.signal);
    }
  }

  async #rest(): Promise<void> {
    this.#nap = new AbortController();
    if (this.#hasWork || this.#stop.signal.aborted) return;
    await this.#options.clock.sleep(LOOK_AGAIN_MS, this.#nap.signal);
  }

  /** @returns whether nothing is left */
  async #replayAll(): Promise<boolean> {
    const { notes, log, metrics } = this.#options;
    let pending: Note[];
    try {
      pending = await notes.list();
    } catch (error) {
      log.error({ err: error }, `notes of deletions cannot be listed: ${messageOf(error)}`);
      return false;
    }
    let left = pending.length;
    metrics.pending(left);
    for (const note of pending) {
      const outcome = await this.#replayOne(note);
      if (outcome === 'away') break; // nor will it answer the others
      if (outcome === 'done') metrics.pending(--left);
    }
    return left === 0;
  }

  async #replayOne(note: Note): Promise<'done' | 'failed' | 'away'> {
    const { replay, log } = this.#options;
    try {
      await replay(note, this.#stop.signal);
      log.info({ ...note.at }, 'a noted deletion is made good');
      return 'done';
    } catch (error) {
      if (this.#stop.signal.aborted) return 'away';
      log.warn({ ...note.at, err: error }, `a noted deletion cannot be made good yet: ${messageOf(error)}`);
      return error instanceof TransportError ? 'away' : 'failed';
    }
  }
}
