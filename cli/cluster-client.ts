import { Client } from '../kube/client.js';
import { type Credentials, loadCredentials } from '../kube/credentials.js';
import { StatusError, TransportError } from '../kube/errors.js';
import { Transport } from '../kube/transport.js';
import { VERSION } from '../process/version.js';
import { CommandError } from './command-error.js';

/** Which cluster, and as whom. */
export interface ClusterOptions {
  /** Default: as kubectl. */
  readonly kubeconfig?: string;
  /** Default: the current one. */
  readonly context?: string;
}

/** Where somebody is at home whose kubeconfig does not say so, as with kubectl. */
const DEFAULT_NAMESPACE = 'default';
/** How many requests are under way at once; connections as many. */
export const CONCURRENCY = 32;
/** A list of thousands of objects from a busy API server, page by page. */
const REQUEST_TIMEOUT_MS = 60_000;

/**
 * Acts with a client, and closes it.
 * @param run told, too, which namespace is meant where the user names none: that of the context
 * @throws {Error} where there are no usable credentials for a cluster
 * @throws {CommandError} where it gives no answer, or does not know whose the credentials are
 */
export async function withClient<T>(
  options: ClusterOptions,
  run: (client: Client, home: string) => Promise<T>,
): Promise<T> {
  const credentials = await loadCredentials(options);
  const transport = new Transport(credentials, {
    userAgent: `kubectl-holdfast/${VERSION}`,
    connections: CONCURRENCY,
    deadlineMs: REQUEST_TIMEOUT_MS,
  });
  try {
    return await run(new Client(transport), credentials.namespace ?? DEFAULT_NAMESPACE);
  } catch (error) {
    throw isUnreachable(error)
      ? new CommandError(`${error.message}: ${adviceFor(credentials)}`, { cause: error })
      : error;
  } finally {
    await transport.close();
  }
}

function isUnreachable(error: unknown): error is TransportError | StatusError {
  return error instanceof TransportError || (error instanceof StatusError && error.status === 401);
}

function adviceFor({ server }: Pick<Credentials, 'server'>): string {
  return `see whether kubectl reaches ${server} with this kubeconfig, or choose another cluster with --kubeconfig or --context`;
}
