import { Client } from '../kube/client.js';
import { type Credentials, loadCredentials } from '../kube/credentials.js';
import { StatusError, TransportError } from '../kube/errors.js';
import { Transport } from '../kube/transport.js';
import { VERSION } from '../process/version.js';
import { CommandError } from './command-error.js';

/** The cluster and the credentials to use. */
export interface ClusterOptions {
  /** Default: as for kubectl. */
  readonly kubeconfig?: string;
  /** Default: the current one. */
  readonly context?: string;
}

/** For a kubeconfig without a namespace, as for kubectl. */
const DEFAULT_NAMESPACE = 'default';
/** The number of parallel requests and connections. */
export const CONCURRENCY = 32;
/** Long enough for a list of thousands of objects from a busy API server. */
const REQUEST_TIMEOUT_MS = 60_000;

/**
 * Calls a function with a client, then closes the client.
 * @param run also gets the namespace of the context, for users who name none, and the URL of the API server
 * @throws {Error} if there are no usable credentials for a cluster
 * @throws {CommandError} if the API server does not answer, or does not accept the credentials
 */
export async function withClient<T>(
  options: ClusterOptions,
  run: (client: Client, home: string, server: string) => Promise<T>,
): Promise<T> {
  const credentials = await loadCredentials(options);
  const transport = new Transport(credentials, {
    userAgent: `kubectl-holdfast/${VERSION}`,
    connections: CONCURRENCY,
    deadlineMs: REQUEST_TIMEOUT_MS,
  });
  try {
    return await run(new Client(transport), credentials.namespace ?? DEFAULT_NAMESPACE, credentials.server);
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
  return `check that kubectl reaches ${server} with this kubeconfig, or choose another cluster with --kubeconfig or --context`;
}
