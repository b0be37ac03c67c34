import type { PingResult } from '../../bed/network/wire-events.js';
import type { OngoingRequest } from '../../bed/network/wire-connection.js';
import type { Terminal } from './program.js';
import type { Command } from './shell.js';

const EVERY_MS = 20;

/** Keeps pinging the target of the last ping, and measures how long it did not answer. */
export class PingMonitor {
  readonly #terminal: Terminal;
  #last: { readonly pod: string; readonly target: string } | undefined;
  #pings: { readonly target: string; readonly lasting: OngoingRequest<PingResult> } | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Remembers the pod and target of a ping. */
  noteCommand({ words }: Command): void {
    const [, verb, pod = ''] = words;
    if (verb === 'exec') this.#last = { pod, target: words.at(-1) ?? '' };
  }

  async start(): Promise<void> {
    const { wire, namespace } = this.#terminal;
    if (wire === undefined || this.#last === undefined) return;
    const { pod, target } = this.#last;
    const place = await wire.locationOf({ namespace, name: pod });
    this.#pings = {
      target,
      lasting: await wire.wire.startPing(place, target, { intervalMs: EVERY_MS, timeoutMs: 200 }),
    };
  }

  /** @returns a label and a result to print; nothing if no ping ran */
  async stop(): Promise<[string, string][]> {
    const pings = this.#pings;
    this.#pings = undefined;
    // the pod that pings may be gone
    const result = await pings?.lasting.stop().catch(() => undefined);
    return result === undefined ? [] : [[`pings to ${pings?.target ?? ''}`, describePings(result)]];
  }
}

function describePings({ sent, received, lossRuns }: PingResult): string {
  const answered = `answered ${String(received)} of ${String(sent)} pings, one every ${String(EVERY_MS)} ms`;
  const last = lossRuns.at(-1);
  if (last === undefined) return answered;
  if (Math.round(last.atMs / EVERY_MS) + last.count >= sent) return `${answered}; silent at the end`;
  const longest = Math.max(...lossRuns.map(({ count }) => count)) * EVERY_MS;
  return `${answered}; silent for ${(longest / 1000).toFixed(1)} s at most`;
}
