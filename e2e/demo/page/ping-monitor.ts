import type { PingResult } from '../../../bed/network/wire-events.js';
import type { OngoingRequest } from '../../../bed/network/wire-connection.js';
import type { Terminal } from './program.js';
import type { Command } from './shell.js';

export const PING_EVERY_MS = 20;

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
    const { wire, kubectl } = this.#terminal;
    if (wire === undefined || this.#last === undefined) return;
    const { pod, target } = this.#last;
    const place = await wire.locationOf({ namespace: await kubectl.namespace(), name: pod });
    this.#pings = {
      target,
      lasting: await wire.wire.startPing(place, target, { intervalMs: PING_EVERY_MS, timeoutMs: 200 }),
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

export function describePings(result: PingResult): string {
  const { sent, received, lossRuns } = result;
  const answered = `answered ${String(received)} of ${String(sent)} pings, one every ${String(PING_EVERY_MS)} ms`;
  if (lossRuns.length === 0) return answered;
  if (isSilentAtEnd(result)) return `${answered}; silent at the end`;
  const longest = Math.max(...lossRuns.map(({ count }) => count)) * PING_EVERY_MS;
  return `${answered}; silent for ${String(longest)} ms at most`;
}

/** Whether the last pings were not answered. */
export function isSilentAtEnd({ sent, lossRuns }: PingResult): boolean {
  const last = lossRuns.at(-1);
  return last !== undefined && Math.round(last.atMs / PING_EVERY_MS) + last.count >= sent;
}
