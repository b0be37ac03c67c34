import { Client } from '../kube/client.js';
import { loadCredentials } from '../kube/config.js';
import { Transport } from '../kube/transport.js';
import { VERSION } from '../process/version.js';

/** Which cluster, and as whom. */
export interface ClusterChoice {
  /** Default: as kubectl. */
  readonly kubeconfig?: string;
  /** Default: the current one. */
  readonly context?: string;
}

/** How many requests are under way at once; connections as many. */
export const WIDTH = 32;
/** A list of thousands of objects from a busy API server, page by page. */
const DEADLINE_MS = 60_000;

/** Acts with a client, and closes it. @throws {Error} where there are no usable credentials for a cluster */
export async function withCluster<T>(choice: ClusterChoice, act: (client: Client) => Promise<T>): Promise<T> {
  const transport = new Transport(await loadCredentials(choice), {
    userAgent: `kubectl-holdfast/${VERSION}`,
    connections: WIDTH,
    deadlineMs: DEADLINE_MS,
  });
  try {
    return await act(new Client(transport));
  } finally {
    await transport.close();
  }
}
