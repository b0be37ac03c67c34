import { copyFile, mkdir } from 'node:fs/promises';
import { connect } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Bed } from '../bed.js';
import { cachedFolder } from '../build/cache.js';
import { findFreePorts } from '../processes/ports.js';
import { capture, type Child } from '../processes/processes.js';
import { waitReady } from '../control-plane/ready.js';
import { IPAM_EXTENSIONS_ACCOUNT } from './installation.js';

/** A checkout of kubevirt/ipam-extensions. It is in no Go proxy. */
export const IPAM_EXTENSIONS_SRC = process.env.IPAM_EXTENSIONS_SRC ?? '';

/** The program cannot be told to listen on other ports. */
const WEBHOOK_PORT = 9443;
const METRICS_PORT = 8080;

/** Returns why the program cannot run here. */
export async function whyNotProgram(): Promise<string | undefined> {
  if (IPAM_EXTENSIONS_SRC === '') return 'IPAM_EXTENSIONS_SRC names no checkout of kubevirt/ipam-extensions';
  for (const port of [WEBHOOK_PORT, METRICS_PORT]) {
    if (await isTaken(port)) return `another process listens on port ${String(port)}`;
  }
  return undefined;
}

/** Builds the program, once for each commit and Go version. @returns its path */
export async function buildProgram(): Promise<string> {
  const cwd = IPAM_EXTENSIONS_SRC;
  const [commit, go] = await Promise.all([
    capture('git', ['rev-parse', '--short=16', 'HEAD'], { cwd }),
    capture('go', ['env', 'GOVERSION'], { cwd }),
  ]);
  const folder = await cachedFolder(`ipam-extensions-${commit.trim()}-${go.trim()}`, async (scratch) => {
    await capture('go', ['build', '-mod=vendor', '-o', join(scratch, 'manager'), './cmd'], { cwd });
  });
  return join(folder, 'manager');
}

export const PROGRAM_WEBHOOK = `https://127.0.0.1:${String(WEBHOOK_PORT)}`;

/** kubevirt/ipam-extensions as a process on this machine. */
export class Program {
  readonly webhookUrl = PROGRAM_WEBHOOK;
  readonly #child: Child;

  private constructor(child: Child) {
    this.#child = child;
  }

  /** @param kubeconfig that of its service account by default */
  static async start(bed: Bed, kubeconfig?: string): Promise<Program> {
    const command = await buildProgram();
    const { namespace, name } = IPAM_EXTENSIONS_ACCOUNT;
    const certificates = join(bed.workDir, 'ipam-extensions');
    await mkdir(certificates, { recursive: true });
    await copyFile(bed.certificates.servingCert, join(certificates, 'tls.crt'));
    await copyFile(bed.certificates.servingKey, join(certificates, 'tls.key'));
    const [port = 0] = await findFreePorts(1);
    const health = `127.0.0.1:${String(port)}`;
    const child = bed.processes.start({
      name: 'ipam-extensions',
      command,
      args: [`--certificates-dir=${certificates}`, `--health-probe-bind-address=${health}`],
      env: { KUBECONFIG: kubeconfig ?? (await bed.serviceAccountKubeconfig(namespace, name)) },
    });
    await waitReady(child, async () => (await fetch(`http://${health}/readyz`)).ok && (await isTaken(WEBHOOK_PORT)));
    return new Program(child);
  }

  stop(): Promise<void> {
    return this.#child.stop();
  }
}

async function isTaken(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
