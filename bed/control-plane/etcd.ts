import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Program } from '../build/binaries.js';
import type { Child, Processes } from '../processes/processes.js';
import { RARE_COLLECTION } from './garbage-collection.js';
import { waitReady } from './ready.js';

interface EtcdOptions {
  readonly processes: Processes;
  readonly program: Program;
  readonly dataDir: string;
  readonly ports: { readonly client: number; readonly peer: number };
}

/** The bed's etcd: one member, without TLS and fsync. */
export class Etcd {
  readonly url: string;
  readonly #options: EtcdOptions;
  #child: Child | undefined;

  constructor(options: EtcdOptions) {
    this.#options = options;
    this.url = `http://127.0.0.1:${options.ports.client}`;
  }

  async start(): Promise<void> {
    const { processes, program, ports } = this.#options;
    const peer = `http://127.0.0.1:${ports.peer}`;
    const child = processes.start({
      name: 'etcd',
      command: program.command,
      args: [
        ...program.args,
        `--data-dir=${this.#folder()}`,
        `--listen-client-urls=${this.url}`,
        `--advertise-client-urls=${this.url}`,
        `--listen-peer-urls=${peer}`,
        `--initial-advertise-peer-urls=${peer}`,
        `--initial-cluster=default=${peer}`,
        '--unsafe-no-fsync',
        '--log-level=warn',
      ],
      env: RARE_COLLECTION,
      stopLast: true,
    });
    this.#child = child;
    await waitReady(child, async () => (await fetch(`${this.url}/health`)).ok);
  }

  /**
   * Compacts all history. Lists and watches at older resourceVersions then end with 410 Gone, unless kube-apiserver answers
   * them from its watch cache. It does until it restarts, or never with `--watch-cache=false`.
   */
  async compact(): Promise<void> {
    const nowhere = Buffer.from('\0').toString('base64');
    const answer = (await this.#call('kv/range', { key: nowhere, count_only: true })) as {
      header: { revision: string };
    };
    await this.#call('kv/compaction', { revision: answer.header.revision, physical: true });
  }

  /** Saves its data. It is away for a moment, because files of a running etcd are not consistent. */
  async save(): Promise<void> {
    await this.#child?.kill();
    await cp(this.#folder(), this.#backup(), { recursive: true });
    await this.start();
  }

  /** Goes back to the saved data. No API server may run. */
  async goBack(): Promise<void> {
    await this.discard();
    await cp(this.#backup(), this.#folder(), { recursive: true });
    await this.start();
  }

  /** Kills etcd and removes its data. */
  async discard(): Promise<void> {
    await this.#child?.kill();
    await rm(this.#folder(), { recursive: true, force: true });
  }

  #backup(): string {
    return join(this.#options.dataDir, 'etcd-backup');
  }

  #folder(): string {
    return join(this.#options.dataDir, 'etcd');
  }

  /** Calls etcd's JSON gateway; see https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway. */
  async #call(path: string, body: object): Promise<unknown> {
    const response = await fetch(`${this.url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) });
    if (!response.ok) throw new Error(`etcd ${path}: ${response.status} ${await response.text()}`);
    return response.json();
  }
}
