import { EventReason } from '../../../api/event-reasons.js';
import { joinKey } from '../../../api/meta.js';
import { claimEventSubjects } from '../../../cluster/event-subjects.js';
import { findUnlessGone } from '../../../kube/absence.js';
import type { Client } from '../../../kube/client.js';
import type { Clock } from '../../../kube/clock.js';
import { isApiUnavailable, messageOf } from '../../../kube/errors.js';
import { type EventRecorder, type EventSubject, LASTING_EVENT_MS } from '../../../kube/events.js';
import type { Logger } from '../../../kube/log.js';
import { IPAM_CLAIMS } from '../../../kube/resources.js';
import { describeDropped, isOfGuest } from './drop-reasons.js';
import { DropTally } from './drop-tally.js';
import { type GuardNote, type GuardSubject, readDropCounts, readGuardNotes, readKernelRefusal } from './guard-notes.js';
import type { GuardMetrics } from './metrics.js';

interface GuardWatchDeps {
  /** That of the plugin's notes. */
  readonly folder: string;
  readonly nodeName: string;
  readonly client: Pick<Client, 'get'>;
  readonly clock: Pick<Clock, 'now' | 'wall'>;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly metrics: GuardMetrics;
  readonly log: Logger;
}

/** How long a port that sends on and on has no further event. */
const QUIET_MS = 10 * 60_000;
/** Each needs a read of a claim; the rest waits for the next round. */
const MAX_EVENTS_A_ROUND = 16;

/** What is known of a port besides its note. */
interface PortState {
  /** Reasons that no event has named yet. */
  readonly untold: Set<string>;
  toldAt: number | undefined;
  isFailureTold: boolean;
}

/** Reports what the guards of a node drop, or would drop, and which ports have no rules. */
export class GuardWatch {
  readonly #deps: GuardWatchDeps;
  readonly #tally = new DropTally();
  readonly #ports = new Map<string, PortState>();
  /** What an event has told of the kernel. */
  #toldRefusal: string | undefined;
  /** When the last counts were written. */
  #countedAt: number | undefined;

  constructor(deps: GuardWatchDeps) {
    this.#deps = deps;
  }

  /** Runs one round. Failures are logged and retried in the next round. */
  async round(signal: AbortSignal): Promise<void> {
    const { folder, log } = this.#deps;
    try {
      await this.#observe(signal);
    } catch (error) {
      if (signal.aborted) return;
      log.warn({ folder, err: error }, `cannot report what guards drop, trying again: ${messageOf(error)}`);
    }
  }

  async #observe(signal: AbortSignal): Promise<void> {
    const { folder, clock, metrics } = this.#deps;
    this.#tellOfKernel(await readKernelRefusal(folder));
    const notes = await readGuardNotes(folder);
    const byName = new Map(notes.map((note) => [note.name, note]));
    for (const name of this.#ports.keys()) if (!byName.has(name)) this.#ports.delete(name);
    metrics.ports(notes);
    const read = await readDropCounts(folder, clock.wall());
    metrics.counted(read !== undefined);
    if (read !== undefined) {
      const seconds = (read.at - (this.#countedAt ?? read.at)) / 1000;
      this.#countedAt = read.at;
      for (const [name, added] of this.#tally.add(read.counts)) this.#count(byName.get(name), added, seconds);
    }
    this.#tally.keep(new Set(byName.keys()));
    const reports = notes.flatMap((note) => this.#reportOf(note) ?? []).slice(0, MAX_EVENTS_A_ROUND);
    for (const report of reports) await this.#report(report, signal);
  }

  /** Told at the start, not when the first pod with a guard fails. */
  #tellOfKernel(refusal: string | undefined): void {
    const { nodeName, log, events } = this.#deps;
    if (refusal !== undefined && refusal !== this.#toldRefusal) {
      const message = `Node ${nodeName} cannot guard interfaces, so guard.mode Enforce refuses pods there: ${refusal}`;
      log.warn({}, message);
      const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: nodeName, uid: nodeName } };
      events.event(node, 'Warning', EventReason.GuardNotApplied, message);
    }
    this.#toldRefusal = refusal;
  }

  #count(note: GuardNote | undefined, added: ReadonlyMap<string, number>, seconds: number): void {
    if (note === undefined) return;
    const { untold } = this.#stateOf(note);
    for (const [reason, packets] of added) {
      this.#deps.metrics.dropped(note, reason, packets);
      if (isOfGuest(reason, packets, seconds)) untold.add(reason);
    }
  }

  #stateOf({ name }: GuardNote): PortState {
    const state = this.#ports.get(name) ?? { untold: new Set(), toldAt: undefined, isFailureTold: false };
    this.#ports.set(name, state);
    return state;
  }

  #reportOf(note: GuardNote): PortReport | undefined {
    const state = this.#stateOf(note);
    const { untold, toldAt = -Infinity } = state;
    const quietMs = this.#deps.clock.now() - toldAt;
    if (note.failure !== undefined) {
      if (state.isFailureTold && quietMs < LASTING_EVENT_MS) return undefined;
      return { note, reason: EventReason.GuardNotApplied, message: describeFailure(note) };
    }
    // an interface that is plugged again under its name has a note of the same name
    state.isFailureTold = false;
    if (untold.size === 0 || quietMs < QUIET_MS) return undefined;
    return { note, reason: EventReason.TrafficNotOfClaim, message: describeDrops(note, [...untold].sort()) };
  }

  async #report({ note, reason, message }: PortReport, signal: AbortSignal): Promise<void> {
    const { events, log, clock } = this.#deps;
    const subject = await this.#eventSubject(note.subject, signal);
    log.warn({ ...note.subject }, message);
    events.event(subject, 'Warning', reason, message);
    const state = this.#stateOf(note);
    state.isFailureTold = note.failure !== undefined;
    state.toldAt = clock.now();
    state.untold.clear();
  }

  /** The VM, or the pod if no claim leads to one. @throws if the API server does not answer */
  async #eventSubject(subject: GuardSubject, signal: AbortSignal): Promise<EventSubject> {
    const { namespace, pod, podUid, claim } = subject;
    const metadata = { namespace, name: pod, ...(podUid !== undefined && { uid: podUid }) };
    const itself = { apiVersion: 'v1', kind: 'Pod', metadata };
    if (claim === undefined) return itself;
    try {
      const found = await findUnlessGone(this.#deps.client, IPAM_CLAIMS, { namespace, name: claim }, { signal });
      const [, owner] = found === undefined ? [] : claimEventSubjects(found);
      return owner ?? itself;
    } catch (error) {
      // one claim that cannot be read must not stop the reports about other ports
      if (signal.aborted || isApiUnavailable(error)) throw error;
      return itself;
    }
  }
}

interface PortReport {
  readonly note: GuardNote;
  readonly reason: EventReason;
  readonly message: string;
}

function describePort({ namespace, pod, interfaceName }: GuardSubject): string {
  return `Interface ${interfaceName} of pod ${joinKey(namespace, pod)}`;
}

function describeFailure({ failure = '', mode, subject }: GuardNote): string {
  const isNot = mode === 'Enforce' ? 'is no longer filtered' : 'is not observed';
  return `${describePort(subject)} ${isNot} by the guard of AddressPool ${subject.pool}: ${failure}`;
}

function describeDrops({ mode, subject }: GuardNote, reasons: readonly string[]): string {
  const { namespace, claim, pool } = subject;
  const whose = claim === undefined ? 'the pod' : `IPAMClaim ${joinKey(namespace, claim)}`;
  const effect =
    mode === 'Enforce'
      ? `the guard of AddressPool ${pool} drops`
      : `guard.mode Enforce of AddressPool ${pool} would drop`;
  return (
    `${describePort(subject)} sends traffic that is not of ${whose}, which ${effect}: ${reasons.map(describeDropped).join(', ')}. ` +
    'Correct the guest. Addresses that are shared on purpose belong into spec.guard.allow of the pool'
  );
}
