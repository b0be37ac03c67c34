import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from '../../kube/client.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { Transport } from '../../kube/transport/transport.js';
import { ApiServer } from './api-server.js';
import { ensureServers, type Progress, type Servers } from '../build/binaries.js';
import { Etcd } from './etcd.js';
import { writeKubeconfig, type ClusterAccess } from './kubeconfig.js';
import { withFreePorts } from '../processes/ports.js';
import { openWorkspace, type Workspace, type WorkspaceOptions } from './workspace.js';

export interface ControlPlaneOptions extends WorkspaceOptions {
  progress?: Progress;
  /** More flags for kube-apiserver, for instance `--watch-cache=false`. */
  apiServerFlags?: readonly string[];
  /** By default a free one. */
  apiServerPort?: number;
}

/** etcd and kube-apiserver, with access as a cluster administrator. */
export interface ControlPlane extends ClusterAccess, Omit<Workspace, 'close' | 'abandon'> {
  /** Path of the administrator's kubeconfig. */
  readonly kubeconfig: string;
  /** The administrator's client. */
  readonly client: Client;
  readonly apiServer: ApiServer;
  readonly etcd: Etcd;
  stop(): Promise<void>;
}

/**
 * Starts etcd and kube-apiserver on free ports of 127.0.0.1.
 * @throws {Error} with the end of the log of a process that exited; the other one is stopped then, but the logs stay
 */
export async function startControlPlane(options: ControlPlaneOptions = {}): Promise<ControlPlane> {
  const servers = await ensureServers(options.progress ?? (() => undefined));
  const workspace = await openWorkspace(options);
  try {
    return await startControlPlaneOn(workspace, servers, options);
  } catch (error) {
    await workspace.abandon();
    throw error;
  }
}

/** Starts them in an existing workspace, which the caller has to close if this fails. */
export async function startControlPlaneOn(
  workspace: Workspace,
  programs: Servers,
  { apiServerFlags = [], apiServerPort }: Pick<ControlPlaneOptions, 'apiServerFlags' | 'apiServerPort'> = {},
): Promise<ControlPlane> {
  const token = randomBytes(16).toString('hex');
  const tokenFile = join(workspace.dataDir, 'tokens.csv');
  await writeFile(tokenFile, `${token},admin,admin,system:masters\n`, { mode: 0o600 });
  const servers = await startServers({ workspace, programs, tokenFile, apiServerFlags, apiServerPort });
  const cluster = { server: servers.apiServer.url, caBundle: workspace.certificates.caBundle };
  const kubeconfig = await writeKubeconfig(join(workspace.workDir, 'admin.kubeconfig'), cluster, token);
  const transport = new Transport(await loadCredentials({ kubeconfig }), { connections: 32 });
  const stop = async () => {
    await transport.close();
    await workspace.close();
  };
  return { ...workspace, ...cluster, ...servers, kubeconfig, client: new Client(transport), stop };
}

interface ServerOptions {
  readonly workspace: Workspace;
  readonly programs: Servers;
  readonly tokenFile: string;
  readonly apiServerFlags: readonly string[];
  readonly apiServerPort: number | undefined;
}

function startServers(options: ServerOptions): Promise<{ etcd: Etcd; apiServer: ApiServer }> {
  const { workspace, programs, tokenFile, apiServerFlags: flags } = options;
  return withFreePorts(3, async ([client, peer, port]) => {
    const etcd = new Etcd({ ...workspace, program: programs.etcd, ports: { client: client!, peer: peer! } });
    try {
      await etcd.start();
      const apiServer = new ApiServer({
        ...workspace,
        name: 'kube-apiserver',
        program: programs.apiServer,
        tokenFile,
        port: options.apiServerPort ?? port!,
        flags,
        etcd,
      });
      await apiServer.start();
      return { etcd, apiServer };
    } catch (error) {
      await etcd.discard();
      throw error;
    }
  });
}
