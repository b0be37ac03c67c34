import type { Deadline } from './deadline.js';
import { TransportError } from '../errors.js';
import { FairSemaphore } from '../fair-semaphore.js';

interface Request {
  readonly method: string;
  readonly path: string;
  /** The namespace whose turn it takes. Default: that of the path; all other requests are one group. */
  readonly tenant?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The largest share of the connections for requests of one namespace, so that those of others start at once. */
const MAX_SHARE = 0.5;

/** Shares the connections of a transport: the requests of one namespace wait for each other, not those of others. */
export class RequestTurns {
  readonly #semaphore: FairSemaphore;

  constructor(connections: number) {
    const maxPerKey = Math.ceil(connections * MAX_SHARE);
    const limits = { max: connections, maxPerKey, maxQueuedPerKey: Infinity };
    this.#semaphore = new FairSemaphore(limits, (tenant) => `requests of namespace ${tenant}`);
  }

  /** @throws {TransportError} `unsent` if the time is over before the turn of the request; and what `send` throws */
  async run<R>(request: Request, deadline: Deadline, send: () => Promise<R>): Promise<R> {
    const { signal } = deadline;
    const state = { isSent: false };
    const turn = this.#semaphore.run(tenantOf(request), 1, () => {
      deadline.confirm();
      signal.throwIfAborted();
      state.isSent = true;
      return send();
    });
    try {
      return await deadline.race(turn);
    } catch (error) {
      if (state.isSent || !signal.aborted || request.signal?.aborted) throw error;
      const { method, path } = request;
      const why = 'earlier requests of its namespace took too long';
      throw new TransportError('unsent', `${method} ${path}: not sent, because ${why}`, error);
    }
  }
}

function tenantOf({ tenant, path }: Request): string {
  return tenant ?? /\/namespaces\/([^/]+)\//.exec(path)?.[1] ?? '';
}
