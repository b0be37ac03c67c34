import { setMaxListeners } from 'node:events';
import type { KubeObject } from '../../../../api/meta.js';
import { StatusError, TransportError } from '../../../../kube/errors.js';
import type { Fault } from '../../../../kube/testing/memory-transport.js';
import type { ApiRequest } from '../../../../kube/transport/transport.js';
import type { Clock } from '../../../../kube/clock.js';
import { COLLECT_AFTER_MS, LeaseAgent, type LeaseAgentOptions } from './lease-agent.js';

/** The outcome of a request. `lost`: applied, without an answer; `failed`: not applied, without an answer; `refused`: rejected. */
export type RequestOutcome = 'answered' | 'lost' | 'failed' | 'refused';

/** Of the requests of an agent that is killed. `late`: new leases are created after the next process has begun. */
export type CrashFate = 'applied' | 'late' | 'lost';

interface PendingApiRequest {
  readonly request: ApiRequest;
  readonly end: (fault: Fault) => void;
}

const REFUSED = new StatusError({ request: 'any', status: 429, reason: 'TooManyRequests', message: 'later' });
const FAULTS: Readonly<Record<RequestOutcome, Fault>> = {
  answered: undefined,
  lost: { error: new TransportError('broken', 'the connection broke'), applied: true },
  failed: { error: new TransportError('deadline', 'no answer in time'), applied: false },
  refused: { error: REFUSED, applied: false },
};

/** An agent whose requests wait until the model decides their outcome. */
export class ModelAgent extends LeaseAgent {
  readonly #pending: PendingApiRequest[] = [];
  readonly #late: ApiRequest[] = [];
  readonly #clock: Pick<Clock, 'now'>;
  #isDead = false;
  #listAgainAt: number;

  constructor(given: LeaseAgentOptions) {
    super(given);
    this.#clock = given.clock;
    this.#listAgainAt = given.clock.now() + COLLECT_AFTER_MS;
    this.api.before = (request) => this.#wait(request);
  }

  serve(pick: number, ending: RequestOutcome): void {
    const { length } = this.#pending;
    const [next] = length === 0 ? [] : this.#pending.splice(pick % length, 1);
    next?.end(FAULTS[ending]);
  }

  /** Stops the agent without answering its requests. @param fate what becomes of the requests under way */
  crash(fate: CrashFate): void {
    this.#isDead = true;
    const error = new TransportError('aborted', 'the agent has stopped');
    for (const { request, end } of this.#pending.splice(0)) {
      if (fate === 'applied') end({ error, applied: true });
      // a release may not, which is a limit of decision 88
      else if (fate === 'late' && request.method === 'POST') this.#late.push(request);
    }
  }

  /** Applies the aborted requests that have not arrived yet. @returns the names of the leases that they wrote */
  arriveLate(): string[] {
    return this.#late.splice(0).flatMap((request) => {
      try {
        return (this.api.serve(request) as KubeObject).metadata.name;
      } catch {
        return []; // refused: nobody learns it
      }
    });
  }

  /** Lists its leases for the second time when no write of an earlier process can arrive any more. */
  listAgainIfDue(): void {
    if (this.#clock.now() < this.#listAgainAt) return;
    this.#listAgainAt = Infinity;
    this.listOwn();
  }

  /** Serves all waiting requests and delivers all events. @returns whether no request was waiting */
  settle(): boolean {
    const isIdle = this.#pending.length === 0;
    while (this.#pending.length > 0) this.serve(0, 'answered');
    this.catchUp();
    return isIdle;
  }

  #wait({ signal, ...request }: ApiRequest): Promise<Fault> {
    return new Promise((resolve) => {
      if (this.#isDead) return;
      const giveUp = () => {
        this.#pending.splice(this.#pending.indexOf(pending), 1);
        // of aborted requests, some are applied, some never arrive, and some writes arrive later
        const fate = this.#pending.length % 3;
        if (fate === 2 && request.method !== 'GET') this.#late.push(request);
        const error = new TransportError('aborted', 'aborted by the caller');
        pending.end({ error, applied: fate === 0 });
      };
      const end = (fault: Fault) => {
        signal?.removeEventListener('abort', giveUp);
        resolve(fault);
      };
      const pending: PendingApiRequest = { request, end };
      this.#pending.push(pending);
      // many requests of a sweep wait at once
      if (signal !== undefined) setMaxListeners(0, signal);
      signal?.addEventListener('abort', giveUp);
    });
  }
}

/** Whether a request may fail like this. A write that the rules of the API server refuse may not. */
export function isExpected(error: unknown): boolean {
  return (
    ['CniError', 'TransportError', 'StatusError'].includes((error as Error).name) && !String(error).includes(' 422 ')
  );
}
