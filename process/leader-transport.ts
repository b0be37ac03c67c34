import { setMaxListeners } from 'node:events';
import type { ApiRequest, ClientTransport, StreamRequest } from '../kube/transport/transport.js';

/** Sends writes only until another process may lead. Reads are always sent: replicas that do not lead fill their caches. */
export class LeaderTransport implements ClientTransport {
  readonly #transport: ClientTransport;
  readonly #leaseLost: () => AbortSignal | undefined;

  /** @param leaseLost aborts when another process may lead; undefined without leader election */
  constructor(transport: ClientTransport, leaseLost: () => AbortSignal | undefined) {
    this.#transport = transport;
    this.#leaseLost = leaseLost;
  }

  request(request: ApiRequest): Promise<unknown> {
    if (request.method === 'GET') return this.#transport.request(request);
    return untilEither(this.#leaseLost(), request.signal, (signal) => this.#transport.request({ ...request, signal }));
  }

  stream(request: StreamRequest): AsyncGenerator<unknown, void, undefined> {
    return this.#transport.stream(request);
  }

  close(): Promise<void> {
    return this.#transport.close();
  }
}

/** Runs with a signal that aborts when one of both does. AbortSignal.any leaks memory while one of them lives for long. */
export async function untilEither<S extends AbortSignal | undefined, R>(
  first: AbortSignal | undefined,
  second: S,
  run: (signal: AbortSignal | S) => Promise<R>,
): Promise<R> {
  if (first === undefined || second === undefined) return run(first ?? second);
  const either = new AbortController();
  // all requests of a sync listen to it, and Node would report a leak
  setMaxListeners(0, either.signal);
  const abort = () => either.abort();
  for (const signal of [first, second]) {
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
  }
  try {
    return await run(either.signal);
  } finally {
    for (const signal of [first, second]) signal.removeEventListener('abort', abort);
  }
}
