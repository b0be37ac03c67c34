import { type Socket, createConnection } from 'node:net';
import { backoff } from '../../kube/retry.js';
import type { Clock, Random } from '../../kube/clock.js';
import { messageOf } from '../../kube/errors.js';
import type { Logger } from '../../kube/log.js';
import {
  type HelperCommand,
  type HelperConfig,
  type HelperReport,
  LineReader,
  MAX_REPORT_LENGTH,
  PROTOCOL_VERSION,
  readReport,
} from '../responder-tables/protocol.js';
import type { ReceivedTable } from './received-table.js';
import { type CommandLines, changesBetween, snapshotOf } from './table-changes.js';
import { WireProbes } from './wire-probes.js';

interface HelperSessionOptions {
  /** The path of the helper's Unix socket. */
  readonly socket: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly onReport: (report: HelperObservation) => void;
}

/** A report that is no answer. */
export type HelperObservation = Exclude<HelperReport, { kind: 'hello' | 'probed' }>;

/** What the helper works with. */
interface HelperState {
  readonly config: HelperConfig;
  readonly table: ReceivedTable;
  /** For how long the table may be used as if it were current; 0: it is stale. */
  readonly freshForMs: () => number;
}

/** How long the helper may take to answer its configuration. */
const ANSWER_MS = 5_000;
const NOT_CONNECTED = 'not connected to the packet helper';

/**
 * Keeps a connection to the packet helper, and the helper's configuration and table equal to the wanted ones. A helper that started again gets
 * everything again.
 */
export class HelperSession {
  readonly #options: HelperSessionOptions;
  #wanted: HelperState | undefined;
  #connection: Connection | undefined;
  #problem: string | undefined = NOT_CONNECTED;
  #abort = new AbortController();
  #running: Promise<void> = Promise.resolve();

  constructor(options: HelperSessionOptions) {
    this.#options = options;
  }

  /** Undefined if the helper works; otherwise why it does not. */
  get problem(): string | undefined {
    return this.#problem;
  }

  start(): void {
    this.#abort = new AbortController();
    this.#running = this.#runRepeatedly(this.#abort.signal);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    this.#connection?.close();
    await this.#running;
  }

  /** Makes the helper work with this state as soon as it can, and tells it then for how long the table is fresh. */
  set(wanted: HelperState): void {
    this.#wanted = wanted;
    this.#connection?.send(wanted);
  }

  /** Tells the helper again for how long it may use its table as if it were current. */
  refresh(): void {
    this.#connection?.refresh();
  }

  /**
   * Asks on the network which hosts have an address: at most one that is not expected, or else all expected ones.
   * @returns undefined if the helper cannot ask
   */
  probe(address: string, expected: readonly string[]): Promise<readonly string[] | undefined> {
    const connection = this.#problem === undefined ? this.#connection : undefined;
    return connection?.probe(address, expected) ?? Promise.resolve(undefined);
  }

  async #runRepeatedly(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options;
    const delays = backoff({ baseMs: 100, maxMs: 2_000, random });
    while (!signal.aborted) {
      try {
        await this.#connect(() => {
          this.#problem = undefined;
          delays.reset();
        });
        this.#problem = `${NOT_CONNECTED}: it closed the connection`;
      } catch (error) {
        this.#problem = `${NOT_CONNECTED}: ${messageOf(error)}`;
      }
      log.debug({}, `${this.#problem}; connecting again`);
      await clock.sleep(delays.next(), signal);
    }
  }

  /** Resolves when the connection ends. */
  async #connect(onReady: () => void): Promise<void> {
    const { socket, clock, onReport } = this.#options;
    const connection = new Connection(createConnection(socket), clock, (report) => {
      if (report.kind === 'hello') onReady();
      else if (report.kind !== 'probed') onReport(report);
    });
    this.#connection = connection;
    if (this.#wanted !== undefined) connection.send(this.#wanted);
    try {
      await connection.ended;
    } finally {
      this.#connection = undefined;
    }
  }
}

/** One connection, and what the helper got over it. */
class Connection {
  readonly ended: Promise<void>;
  readonly #socket: Socket;
  readonly #clock: Pick<Clock, 'setTimer' | 'now'>;
  readonly #onReport: (report: HelperReport) => void;
  readonly #probes: WireProbes;
  #wanted: HelperState | undefined;
  /** Undefined: the helper has no whole table. */
  #sent: HelperState | undefined;
  /** A state is being sent, or the connection has ended. */
  #isSending = false;
  /** Until when the helper has been told that its table is fresh. */
  #freshUntil = -Infinity;
  #cancelTimer: () => void = () => undefined;

  constructor(socket: Socket, clock: Pick<Clock, 'setTimer' | 'now'>, onReport: (report: HelperReport) => void) {
    this.#socket = socket;
    this.#clock = clock;
    this.#onReport = onReport;
    this.#probes = new WireProbes(clock);
    const lines = new LineReader('the packet helper', MAX_REPORT_LENGTH, (line) => this.#receive(readReport(line)));
    this.ended = new Promise<void>((resolve, reject) => {
      socket.on('data', (chunk: Buffer) => {
        try {
          lines.push(chunk);
        } catch (error) {
          socket.destroy(error instanceof Error ? error : new Error(messageOf(error)));
        }
      });
      socket.on('error', reject);
      socket.on('close', () => resolve());
    }).finally(() => {
      this.#cancelTimer();
      this.#probes.end();
    });
  }

  close(): void {
    this.#socket.destroy();
  }

  send(wanted: HelperState): void {
    this.#wanted = wanted;
    if (this.#isSending) return;
    this.#isSending = true;
    this.#sendWanted().catch((error: unknown) => void this.#socket.destroy(error as Error));
  }

  /** Does nothing while the helper has another table than the wanted one. */
  refresh(): void {
    if (this.#sent !== undefined && this.#sent === this.#wanted) this.#tellFreshness(this.#sent.freshForMs());
  }

  probe(address: string, expected: readonly string[]): Promise<readonly string[] | undefined> {
    return this.#probes.ask(address, expected, (probe) => this.#write({ probe }));
  }

  /** A helper that reads slowly gets the newest state when it has read the last one. */
  async #sendWanted(): Promise<void> {
    while (this.#wanted !== undefined && this.#wanted !== this.#sent && !this.#socket.destroyed) {
      const [before, wanted] = [this.#sent, this.#wanted];
      const changes = this.#begin(before, wanted);
      if (before === undefined || JSON.stringify(before.config) !== JSON.stringify(wanted.config)) {
        this.#write({ config: wanted.config });
        this.#awaitAnswer();
      }
      this.#sent = undefined;
      for await (const line of changes) if (!(await this.#writeLine(line))) return;
      this.#sent = wanted;
      this.refresh();
    }
    // in the turn of the last comparison, so that a later state is sent
    this.#isSending = false;
  }

  #begin(before: HelperState | undefined, { table, freshForMs }: HelperState): CommandLines {
    if (before === undefined) return snapshotOf(table);
    // meanwhile, the helper has entries of both tables
    this.#tellFreshness(Math.min(freshForMs(), this.#freshUntil - this.#clock.now()));
    return changesBetween(before.table, table);
  }

  #tellFreshness(forMs: number): void {
    this.#freshUntil = this.#clock.now() + forMs;
    this.#write({ fresh: { forMs: Math.max(0, Math.floor(forMs)) } });
  }

  #write(command: HelperCommand): void {
    this.#socket.write(`${JSON.stringify(command)}\n`);
  }

  /** Waits while the helper reads more slowly than it is written. @returns false if the connection has ended */
  async #writeLine(line: string): Promise<boolean> {
    const socket = this.#socket;
    if (!socket.destroyed && !socket.write(`${line}\n`))
      await new Promise<void>((resolve) => {
        const go = () => {
          socket.off('drain', go).off('close', go);
          resolve();
        };
        socket.on('drain', go).on('close', go);
      });
    return !socket.destroyed;
  }

  #awaitAnswer(): void {
    this.#cancelTimer();
    this.#cancelTimer = this.#clock.setTimer(ANSWER_MS, () => {
      this.#socket.destroy(
        new Error(`the packet helper did not answer its configuration within ${ANSWER_MS / 1000} s`),
      );
    });
  }

  #receive(report: HelperReport): void {
    if (report.kind === 'hello') {
      this.#cancelTimer();
      checkHello(report);
    }
    if (report.kind === 'probed') this.#probes.answer(report.id, report.macs);
    this.#onReport(report);
  }
}

/** @throws {Error} that says what to correct */
function checkHello({ version, hasAddress }: Extract<HelperReport, { kind: 'hello' }>): void {
  if (version !== PROTOCOL_VERSION) {
    throw new Error(
      `the packet helper has version ${version} of the protocol, not ${PROTOCOL_VERSION}: run both containers with one image`,
    );
  }
  if (hasAddress) {
    throw new Error(
      'the kernel has an address on the attached interface: the NetworkAttachmentDefinition must have no ipam, and must disable IPv6',
    );
  }
}
