import { createInterface } from 'node:readline';
import type { Child } from '../processes.js';

/** A request that goes on until it is stopped. */
export interface OngoingRequest<Result> {
  /** Asks for the end. @returns the result */
  stop(): Promise<Result>;
  /** The result, for a request that ends by itself too. */
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

/** Requests and answers, one JSON object a line each, over the pipes of a child; answers come in any order. */
export class WireConnection {
  readonly #child: Child;
  readonly #pending = new Map<number, PendingRequest>();
  #lastId = 0;

  constructor(child: Child) {
    this.#child = child;
    const { input, output } = child.pipes;
    input?.on('error', () => undefined); // the child is gone, as it will say by itself
    if (output) createInterface({ input: output }).on('line', (line) => this.#take(JSON.parse(line) as NetbedReply));
    void child.exited.then(() => this.#giveUp());
  }

  /** @throws {Error} with the words of the other side, or with the end of its log when it is gone */
  request<Result>(op: string, body: object = {}): Promise<Result> {
    return this.#send<Result>(op, body).result;
  }

  /** Resolves once the request has begun to work. Its later events go to `onEvent`. */
  async begin<Result>(op: string, body: object, onEvent: (event: unknown) => void): Promise<OngoingRequest<Result>> {
    let started: () => void = () => undefined;
    const hasStarted = new Promise<void>((resolve) => (started = resolve));
    const { id, result } = this.#send<Result>(op, body, (event) => (event === 'started' ? started() : onEvent(event)));
    await Promise.race([hasStarted, result]);
    const stop = async () => {
      await this.request('stop', { request: id });
      return result;
    };
    return { ended: result, stop };
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
    result.catch(() => undefined); // a lasting request may fail while nobody waits for its end
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
    for (const pending of this.#pending.values()) pending.reject(new Error(`${this.#child.name} is gone`));
    this.#pending.clear();
  }
}
