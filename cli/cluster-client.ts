import { Client } from '../kube/client.js';
import { type Credentials, loadCredentials } from '../kube/transport/credentials.js';
import { StatusError, TransportError, isForbidden, webhookFailureOf } from '../kube/errors.js';
import { Transport } from '../kube/transport/transport.js';
import { VERSION } from '../process/version.js';
import { addClusterFlags, shellWord } from './cluster-flags.js';
import { CommandError } from './exit-code.js';
import { describeForbidden } from './forbidden.js';

/** The cluster and the credentials to use. */
export interface ClusterOptions {
  /** Default: as for kubectl. */
  readonly kubeconfig?: string;
  /** Default: the current one. */
  readonly context?: string;
  /** Impersonation: whose rights the requests have. */
  readonly as?: string;
  readonly asGroup?: readonly string[];
}

/** The flags that chose cluster and user, for the end of printed commands: each begins with a space. */
export interface ClusterFlags {
  /** For kubectl, and for Flux, whose flags have the same names. */
  readonly clusterFlags: string;
  readonly helmClusterFlags: string;
}

/** A cluster that a command talks to. */
export interface Connection extends ClusterFlags {
  readonly client: Client;
  /** For requests that are not about objects, such as logs. */
  readonly transport: Transport;
  /** The namespace of the context, for users who name none. */
  readonly home: string;
  /** URL of the API server. */
  readonly server: string;
  readonly credentials: Credentials;
}

/** For a kubeconfig without a namespace, as for kubectl. */
const DEFAULT_NAMESPACE = 'default';
/** The number of parallel requests and connections. */
export const CONCURRENCY = 32;
/** Long enough for a list of thousands of objects from a busy API server. */
const REQUEST_TIMEOUT_MS = 60_000;

/**
 * Calls a function with a client, then closes the client.
 * @throws {Error} if there are no usable credentials for a cluster
 * @throws {CommandError} if the API server does not answer, does not accept the credentials, or refuses a request
 */
export async function withClient<T>(options: ClusterOptions, run: (cluster: Connection) => Promise<T>): Promise<T> {
  const credentials = impersonating(await loadCredentials(options), options);
  const transport = new Transport(credentials, {
    userAgent: `kubectl-holdfast/${VERSION}`,
    connections: CONCURRENCY,
    deadlineMs: REQUEST_TIMEOUT_MS,
  });
  const { server, namespace: home = DEFAULT_NAMESPACE } = credentials;
  const flags = { clusterFlags: clusterFlagsOf(options), helmClusterFlags: clusterFlagsOf(options, HELM_FLAGS) };
  try {
    return await run({ client: new Client(transport), transport, home, server, credentials, ...flags });
  } catch (error) {
    const message = describeFailure(error, server, flags);
    throw message === undefined ? error : new CommandError(message, { cause: error });
  } finally {
    await transport.close();
  }
}

/** Flags of kubectl that have another name in Helm. */
const HELM_FLAGS: Readonly<Record<string, string>> = {
  '--context': '--kube-context',
  '--as': '--kube-as-user',
  '--as-group': '--kube-as-group',
};

function clusterFlagsOf(
  { kubeconfig, context, as, asGroup = [] }: ClusterOptions,
  names: Readonly<Record<string, string>> = {},
): string {
  const flags: [string, string | undefined][] = [
    ['--kubeconfig', kubeconfig],
    ['--context', context],
    ['--as', as],
    ...asGroup.map((group): [string, string] => ['--as-group', group]),
  ];
  return flags
    .map(([flag, value]) => (value === undefined ? '' : ` ${names[flag] ?? flag} ${shellWord(value)}`))
    .join('');
}

/** As `kubectl --as` and `--as-group`. */
function impersonating(credentials: Credentials, { as, asGroup = [] }: ClusterOptions): Credentials {
  if (as === undefined) return credentials;
  const { server, namespace } = credentials;
  const groups = asGroup.length === 0 ? {} : { 'impersonate-group': [...asGroup] };
  return {
    ...{ server, namespace, tls: () => credentials.tls(), refresh: () => credentials.refresh() },
    headers: async () => ({ ...(await credentials.headers()), 'impersonate-user': as, ...groups }),
  };
}

/** Says in words why a command, or a request to the API server, failed, and what to do; undefined for other errors. */
function describeFailure(error: unknown, server: string, { clusterFlags }: ClusterFlags): string | undefined {
  if (error instanceof CommandError) return addClusterFlags(error.message, clusterFlags);
  const other = 'or choose another cluster with --kubeconfig or --context';
  if (error instanceof TransportError)
    return `${error.message}: check that kubectl reaches ${server} with this kubeconfig, ${other}`;
  if (error instanceof StatusError && error.status === 401)
    return `${error.message}: ${server} does not accept the credentials of this kubeconfig, which may have expired: log in again, check that kubectl reaches ${server} with it, ${other}`;
  return isForbidden(error) ? describeForbidden(error) : addClusterFlags(webhookFailureOf(error), clusterFlags);
}
