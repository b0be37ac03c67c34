import { access, readFile } from 'node:fs/promises';
import type { RequestOptions } from 'node:https';
import { isIPv6 } from 'node:net';
import { homedir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import type { KubeConfig } from '@kubernetes/client-node';
import { asRecord } from '../../api/json.js';
import { messageOf } from '../errors.js';

export interface TlsOptions {
  ca?: string | Buffer;
  cert?: string | Buffer;
  key?: string | Buffer;
  rejectUnauthorized: boolean;
  /** The name in the server's certificate, if it is not the host of the URL. */
  servername?: string;
}

/** A list is sent as several headers of that name. */
export type RequestHeaders = Record<string, string | string[]>;

/** The address of the API server and our identity. `tls` and `headers` read rotated files again, so callers cache the result. */
export interface Credentials {
  /** Base URL, possibly with a path. */
  readonly server: string;
  /** The default namespace; undefined if none is configured. */
  readonly namespace?: string | undefined;
  tls(): Promise<TlsOptions>;
  headers(): Promise<RequestHeaders>;
  /** Drops cached tokens. Called after a 401. */
  refresh(): Promise<void>;
}

export interface CredentialsOptions {
  /** Path of a kubeconfig file. Absent: `KUBECONFIG`, then the pod's service account, then `~/.kube/config`. */
  kubeconfig?: string | undefined;
  /** Name of a context. Absent: the file's current context. */
  context?: string | undefined;
  environment?: NodeJS.ProcessEnv;
  serviceAccountDirectory?: string;
}

const SERVICE_ACCOUNT_DIRECTORY = '/var/run/secrets/kubernetes.io/serviceaccount';

/** @throws {Error} if there are no credentials, or they name no server */
export async function loadCredentials(options: CredentialsOptions = {}): Promise<Credentials> {
  const { environment = process.env, serviceAccountDirectory: directory = SERVICE_ACCOUNT_DIRECTORY } = options;
  const files = kubeconfigFiles(options.kubeconfig, environment.KUBECONFIG);
  if (files.length > 0) return KubeconfigCredentials.load(files, options.context);

  const server = serverOfPod(environment);
  if (server !== undefined && (await exists(join(directory, 'token')))) {
    return new ServiceAccountCredentials(server, directory, await readNamespace(directory));
  }

  const personal = join(environment.HOME ?? homedir(), '.kube', 'config');
  if (await exists(personal)) return KubeconfigCredentials.load([personal], options.context);
  throw new Error(
    `no cluster credentials: set --kubeconfig or KUBECONFIG; there is no service account in ${directory} and no file ${personal}`,
  );
}

function kubeconfigFiles(given: string | undefined, listed: string | undefined): string[] {
  if (given) return [given];
  return (listed ?? '').split(delimiter).filter((file) => file !== '');
}

function serverOfPod(environment: NodeJS.ProcessEnv): string | undefined {
  const host = environment.KUBERNETES_SERVICE_HOST;
  if (!host) return undefined;
  return `https://${isIPv6(host) ? `[${host}]` : host}:${environment.KUBERNETES_SERVICE_PORT ?? '443'}`;
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

async function readNamespace(directory: string): Promise<string | undefined> {
  const text = await readFile(join(directory, 'namespace'), 'utf8').catch(() => '');
  return text.trim() || undefined;
}

/** The service account of a pod: two files that the kubelet rotates. Read here, so that pods do not load KubeConfig. */
class ServiceAccountCredentials implements Credentials {
  readonly server: string;
  readonly namespace: string | undefined;
  readonly #directory: string;

  constructor(server: string, directory: string, namespace: string | undefined) {
    this.server = server;
    this.namespace = namespace;
    this.#directory = directory;
  }

  async tls(): Promise<TlsOptions> {
    return { ca: await readFile(join(this.#directory, 'ca.crt')), rejectUnauthorized: true };
  }

  async headers(): Promise<Record<string, string>> {
    const token = await readFile(join(this.#directory, 'token'), 'utf8');
    return { authorization: bearer(token) };
  }

  async refresh(): Promise<void> {
    // Nothing is cached here.
  }
}

class KubeconfigCredentials implements Credentials {
  readonly server: string;
  readonly namespace: string | undefined;
  readonly #files: string[];
  /** Stays if another one becomes current, whose credentials may be for another server. */
  readonly #context: string;
  #config: KubeConfig;
  /** By user. */
  #tokenFiles: Map<string, string>;

  private constructor(files: string[], { config, tokenFiles }: LoadedKubeconfig) {
    this.#files = files;
    this.#config = config;
    this.#tokenFiles = tokenFiles;
    this.server = serverOf(config, files);
    this.#context = config.getCurrentContext();
    this.namespace = config.getContextObject(this.#context)?.namespace;
  }

  static async load(files: string[], context: string | undefined): Promise<KubeconfigCredentials> {
    return new KubeconfigCredentials(files, await readKubeconfig(files, context));
  }

  async tls(): Promise<TlsOptions> {
    const { ca, cert, key, rejectUnauthorized, servername } = await this.#options();
    return {
      ...(ca ? { ca: ca as Buffer } : {}),
      ...(cert ? { cert: cert as Buffer } : {}),
      ...(key ? { key: key as Buffer } : {}),
      ...(servername ? { servername } : {}),
      rejectUnauthorized: rejectUnauthorized !== false,
    };
  }

  async headers(): Promise<Record<string, string>> {
    const options = await this.#options();
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {}))
      headers[name.toLowerCase()] = String(value).trim();
    const tokenFile = this.#tokenFiles.get(this.#config.getCurrentUser()?.name ?? '');
    if (tokenFile !== undefined) headers.authorization = bearer(await readFile(tokenFile, 'utf8'));
    if (options.auth) headers.authorization = `Basic ${Buffer.from(options.auth).toString('base64')}`;
    return headers;
  }

  async refresh(): Promise<void> {
    // A new KubeConfig does not have the cached tokens of exec plugins and OIDC.
    const { config, tokenFiles } = await readKubeconfig(this.#files, this.#context);
    this.#config = config;
    this.#tokenFiles = tokenFiles;
  }

  async #options(): Promise<RequestOptions> {
    const options: RequestOptions = {};
    await this.#config.applyToHTTPSOptions(options);
    return options;
  }
}

function bearer(token: string): string {
  return `Bearer ${token.trim()}`;
}

interface LoadedKubeconfig {
  config: KubeConfig;
  tokenFiles: Map<string, string>;
}

async function readKubeconfig(files: string[], context: string | undefined): Promise<LoadedKubeconfig> {
  // The package's root would load every generated model and a websocket client.
  const { KubeConfig } = await import('@kubernetes/client-node/dist/config.js');
  const config = new KubeConfig();
  const tokenFiles = new Map<string, string>();
  const missing: Error[] = [];
  for (const file of files) {
    try {
      const text = await readFile(file, 'utf8');
      if (hasNoDocument(text)) continue;
      const one = new KubeConfig();
      one.loadFromFile(file);
      const ofUsers = await readTokenFiles(file, text);
      for (const [user, path] of ofUsers) if (config.getUser(user) === null) tokenFiles.set(user, path);
      mergeKubeconfig(config, one);
    } catch (error) {
      const remedy = 'correct the file, or name another one with --kubeconfig or KUBECONFIG';
      const failure = new Error(`cannot read kubeconfig ${file}: ${messageOf(error)}: ${remedy}`, { cause: error });
      if (asRecord(error).code !== 'ENOENT') throw failure;
      missing.push(failure);
    }
  }
  // as kubectl, which skips missing files of a list
  const [first] = missing;
  if (first !== undefined && missing.length === files.length) throw first;
  if (context !== undefined) config.setCurrentContext(context);
  return { config, tokenFiles };
}

/** As with kubectl, the first file with an entry of a name, or with a current context, wins. */
function mergeKubeconfig(into: KubeConfig, from: KubeConfig): void {
  from.clusters = from.clusters.filter(({ name }) => into.getCluster(name) === null);
  from.users = from.users.filter(({ name }) => into.getUser(name) === null);
  from.contexts = from.contexts.filter(({ name }) => into.getContextObject(name) === null);
  into.mergeConfig(from, Boolean(into.currentContext));
}

/** Such a file is an empty kubeconfig for kubectl; KubeConfig fails. */
function hasNoDocument(text: string): boolean {
  return text.replaceAll(/#.*|---/g, '').trim() === '';
}

/** Returns each user's `tokenFile`, which KubeConfig does not support. */
async function readTokenFiles(file: string, text: string): Promise<[string, string][]> {
  if (!text.includes('tokenFile')) return [];
  const { parse } = await import('yaml');
  const { users = [] } = parse(text) as { users?: { name: string; user?: { tokenFile?: string } }[] };
  return users.flatMap(({ name, user }) =>
    user?.tokenFile ? [[name, resolve(dirname(file), user.tokenFile)] as [string, string]] : [],
  );
}

function serverOf(config: KubeConfig, files: string[]): string {
  const paths = files.join(delimiter);
  const contexts = config.getContexts().map(({ name }) => name);
  const context = config.getCurrentContext() as string | undefined;
  if (!context || !contexts.includes(context)) {
    const problem = context ? `has no context "${context}"` : 'names no current context';
    throw new Error(`kubeconfig ${paths} ${problem}; there are: ${contexts.join(', ') || 'none'}`);
  }
  const cluster = config.getCurrentCluster();
  const where = `context "${context}" of kubeconfig ${paths}`;
  if (!cluster?.server) throw new Error(`${where} names no cluster with a server`);
  if (cluster.proxyUrl) throw new Error(`${where} has proxy-url ${cluster.proxyUrl}, which Holdfast does not support`);
  // the library would reject it at the first request, with a message that does not help
  if (/^http:/i.test(cluster.server) && !cluster.skipTLSVerify) {
    throw new Error(
      `${where} names ${cluster.server}, to which tokens would be sent unencrypted: choose a context whose server is https://…, such as the one with which kubectl proxy was started, or set insecure-skip-tls-verify: true for this cluster`,
    );
  }
  return cluster.server;
}
