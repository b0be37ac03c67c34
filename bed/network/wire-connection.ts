import { createInterface } from 'node:readline';
import type { Child } from '../processes/processes.js';

/** A request that runs until it is stopped. */
export interface OngoingRequest<Result> {
  /** Names it in other requests. */
  readonly id: number;
  /** Stops the request. @returns its result */
  stop(): Promise<Result>;
  /** Resolves with the result when the request ends, by itself or by `stop`. */
  readonly ended: Promise<Result>;
}

interface NetbedReply {
  id: number;
  result?: unknown;
  event?: unknown;
  error?: string;
}

interface PendingRequest {
  resolve(result: unknown): void;
  reject(error: Error): void;
  onEvent(event: unknown): void;
}

/** Exchanges requests and replies with a child process as lines of JSON. Replies arrive in any order. */
export class WireConnection {
  readonly #child: Child;
  readonly #pending = new Map<number, PendingRequest>();
  #lastId = 0;

  constructor(child: Child) {
    this.#child = child;
    const { input, output } = child.pipes;
    input?.on('error', () => undefined); // the child has ended; its `exited` reports that
    if (output) createInterface({ input: output }).on('line', (line) => this.#take(JSON.parse(line) as NetbedReply));
    void child.exited.then(() => this.#giveUp());
  }

  /** @throws {Error} with the error of netbed, or with the end of its log if it has ended */
  request<Result>(op: string, body: object = {}): Promise<Result> {
    return this.#send<Result>(op, body).result;
  }

  /** Resolves when the request has started. Its later events go to `onEvent`. */
  async begin<Result>(op: string, body: object, onEvent: (event: unknown) => void): Promise<OngoingRequest<Result>> {
    let started: () => void = () => undefined;
    const hasStarted = new Promise<void>((resolve) => (started = resolve));
    const { id, result } = this.#send<Result>(op, body, (event) => (event === 'started' ? started() : onEvent(event)));
    await Promise.race([hasStarted, result]);
    const stop = async () => {
      await this.request('stop', { request: id });
      return result;
    };
    return { id, ended: result, stop };
  }

  #send<Result>(
    op: string,
    body: object,
    onEvent: (event: unknown) => void = () => undefined,
  ): { id: number; result: Promise<Result> } {
    const id = ++this.#lastId;
    const result = new Promise<Result>((resolve, reject) => {
      this.#child.assertRunning();
      this.#pending.set(id, { resolve, reject, onEvent });
      this.#child.pipes.input?.write(`${JSON.stringify({ ...body, id, op })}\n`);
    });
    result.catch(() => undefined); // an ongoing request may fail before its result is awaited
    return { id, result };
  }

  #take(answer: NetbedReply): void {
    const pending = this.#pending.get(answer.id);
    if (answer.event !== undefined) {
      pending?.onEvent(answer.event);
      return;
    }
    this.#pending.delete(answer.id);
    if (answer.error === undefined) pending?.resolve(answer.result);
    else pending?.reject(new Error(answer.error));
  }

  #giveUp(): void {
    for (const pending of this.#pending.values()) pending.reject(new Error(`${this.#child.name} has ended`));
    this.#pending.clear();
  }
}
