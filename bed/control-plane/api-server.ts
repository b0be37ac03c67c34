import { join } from 'node:path';
import type { Certificates } from './certificates.js';
import type { Etcd } from './etcd.js';
import type { Program } from '../build/binaries.js';
import { RARE_COLLECTION } from './garbage-collection.js';
import type { Child, Processes } from '../processes/processes.js';
import { httpsGet, waitReady } from './ready.js';

/** It needs three seconds of CPU time, and twice that if there are many objects, which take minutes on a busy machine. */
const READY_MS = 180_000;

export interface ApiServerOptions {
  /** Of the process and its log. */
  readonly name: string;
  readonly processes: Processes;
  readonly program: Program;
  readonly dataDir: string;
  readonly certificates: Certificates;
  readonly tokenFile: string;
  readonly port: number;
  readonly flags: readonly string[];
  readonly etcd: Etcd;
}

/** A kube-apiserver of the bed. Tests may kill, start, pause and resume it; its port never changes. */
export class ApiServer {
  readonly url: string;
  readonly #options: ApiServerOptions;
  #child: Child | undefined;

  constructor(options: ApiServerOptions) {
    this.#options = options;
    this.url = `https://127.0.0.1:${options.port}`;
  }

  /** @throws {Error} if it was never started */
  get pid(): number {
    if (this.#child === undefined) throw new Error(`${this.#options.name} does not run`);
    return this.#child.pid;
  }

  /** Another one for the same etcd, which does not run yet. */
  replica(name: string, port: number): ApiServer {
    return new ApiServer({ ...this.#options, name, port });
  }

  /** Starts it, and waits until it is ready. */
  async start(): Promise<void> {
    if (this.#child?.running) return;
    const { name, processes, program, certificates } = this.#options;
    const args = [...program.args, ...this.#flags()];
    const child = processes.start({ name, command: program.command, args, env: RARE_COLLECTION });
    this.#child = child;
    // needs no credentials, as on every cluster
    const isReady = async () => (await httpsGet(`${this.url}/readyz`, certificates.ca)) === 'ok';
    await waitReady(child, isReady, READY_MS);
  }

  /** Kills it, as in a crash: connections are reset. */
  async kill(): Promise<void> {
    await this.#child?.kill();
  }

  /** Stops it without ending it, as if it hangs: connections stay open and get no answers. */
  async pause(): Promise<void> {
    await this.#child?.pause();
  }

  resume(): void {
    this.#child?.signal('SIGCONT');
  }

  #flags(): string[] {
    const { name, certificates, dataDir, tokenFile, port, etcd, flags } = this.#options;
    return [
      `--etcd-servers=${etcd.url}`,
      '--bind-address=127.0.0.1',
      `--secure-port=${port}`,
      `--cert-dir=${join(dataDir, name)}`,
      `--tls-cert-file=${certificates.servingCert}`,
      `--tls-private-key-file=${certificates.servingKey}`,
      `--token-auth-file=${tokenFile}`,
      '--authorization-mode=RBAC',
      '--allow-privileged=true',
      '--service-cluster-ip-range=10.96.0.0/16',
      '--service-account-issuer=https://kubernetes.default.svc',
      `--service-account-signing-key-file=${certificates.serviceAccountKey}`,
      `--service-account-key-file=${certificates.serviceAccountPublicKey}`,
      `--requestheader-client-ca-file=${certificates.frontProxyCa}`,
      '--requestheader-allowed-names=front-proxy-client',
      '--requestheader-extra-headers-prefix=X-Remote-Extra-',
      '--requestheader-group-headers=X-Remote-Group',
      '--requestheader-username-headers=X-Remote-User',
      `--proxy-client-cert-file=${certificates.frontProxyCert}`,
      `--proxy-client-key-file=${certificates.frontProxyKey}`,
      // there is no cluster network, so the API server itself resolves Services to endpoints
      '--enable-aggregator-routing=true',
      ...flags,
    ];
  }
}
