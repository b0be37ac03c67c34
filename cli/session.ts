import { Client } from '../kube/client.js';
import { type Credentials, loadCredentials } from '../kube/config.js';
import { StatusError, TransportError } from '../kube/errors.js';
import { Transport } from '../kube/transport.js';
import { VERSION } from '../process/version.js';
import { Refusal } from './refusal.js';

/** Which cluster, and as whom. */
export interface ClusterChoice {
  /** Default: as kubectl. */
  readonly kubeconfig?: string;
  /** Default: the current one. */
  readonly context?: string;
}

/** Where somebody is at home whose kubeconfig does not say so, as with kubectl. */
const HOME = 'default';
/** How many requests are under way at once; connections as many. */
export const WIDTH = 32;
/** A list of thousands of objects from a busy API server, page by page. */
const DEADLINE_MS = 60_000;

/**
 * Acts with a client, and closes it.
 * @param act told, too, which namespace is meant where the user names none: that of the context
 * @throws {Error} where there are no usable credentials for a cluster
 * @throws {Refusal} where it gives no answer, or does not know whose the credentials are
 */
export async function withCluster<T>(
  choice: ClusterChoice,
  act: (client: Client, home: string) => Promise<T>,
): Promise<T> {
  const credentials = await loadCredentials(choice);
  const transport = new Transport(credentials, {
    userAgent: `kubectl-holdfast/${VERSION}`,
    connections: WIDTH,
    deadlineMs: DEADLINE_MS,
  });
  try {
    return await act(new Client(transport), credentials.namespace ?? HOME);
  } catch (error) {
    throw isNoAnswer(error) ? new Refusal(`${error.message}: ${remedyFor(credentials)}`, { cause: error }) : error;
  } finally {
    await transport.close();
  }
}

function isNoAnswer(error: unknown): error is TransportError | StatusError {
  return error instanceof TransportError || (error instanceof StatusError && error.status === 401);
}

function remedyFor({ server }: Pick<Credentials, 'server'>): string {
  return `see whether kubectl reaches ${server} with this kubeconfig, or choose another cluster with --kubeconfig or --context`;
}
