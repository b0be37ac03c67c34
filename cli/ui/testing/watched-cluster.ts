import { StatusError, TransportError } from '../../../kube/errors.js';
import { MemoryTransport, targetOf } from '../../../kube/testing/memory-transport.js';
import { NOT_FOUND, refusal } from '../../../kube/testing/refusals.js';
import type { ApiRequest, StreamRequest } from '../../../kube/transport/transport.js';

/** The API server as a page sees it: some kinds may not be served, or not be listed by the user. */
export class WatchedCluster extends MemoryTransport {
  /** Plural → the namespaces that the user may not list; `*`: all of them, and the cluster. */
  readonly forbidden = new Map<string, readonly string[]>();
  readonly absent = new Set<string>();

  /** The user's token has ended. */
  isLoggedOut = false;

  #isAway = false;
  #outage = new AbortController();

  override before: MemoryTransport['before'] = ({ path }: ApiRequest) => {
    if (this.#isAway) throw new TransportError('unsent', 'connect ECONNREFUSED 192.0.2.1:6443');
    if (this.isLoggedOut)
      throw new StatusError({ request: `GET ${path}`, message: 'Unauthorized', status: 401, reason: 'Unauthorized' });
    const { kind, namespace } = targetOf(path);
    if (this.absent.has(kind.plural)) throw refusal(kind, '', NOT_FOUND, 'is not served');
    if (this.#isForbidden(kind.plural, namespace)) {
      const message = forbiddenMessage(kind, namespace);
      throw new StatusError({ request: `GET ${path}`, message, status: 403, reason: 'Forbidden' });
    }
  };

  override stream(request: StreamRequest) {
    return super.stream({ ...request, signal: AbortSignal.any([request.signal, this.#outage.signal]) });
  }

  /** Ends all watches, and refuses connections until {@link comeBack}. */
  goAway(): void {
    this.#isAway = true;
    this.#outage.abort();
    this.#outage = new AbortController();
  }

  comeBack(): void {
    this.#isAway = false;
  }

  async untilWatching(plural: string, count: number): Promise<void> {
    while (this.watching(plural) !== count) await new Promise((resolve) => setImmediate(resolve));
  }

  #isForbidden(plural: string, namespace: string | undefined): boolean {
    const hidden = this.forbidden.get(plural) ?? [];
    return namespace === undefined ? hidden.length > 0 : hidden.includes('*') || hidden.includes(namespace);
  }
}

/** In the words of the API server. */
function forbiddenMessage({ plural, group }: { plural: string; group: string }, namespace: string | undefined): string {
  const where = namespace === undefined ? 'at the cluster scope' : `in the namespace "${namespace}"`;
  return `${plural}.${group} is forbidden: User "alice" cannot list resource "${plural}" in API group "${group}" ${where}`;
}
