import { Client } from '../kube/client.js';
import { type Clock, type Random, systemClock } from '../kube/clock.js';
import { loadCredentials } from '../kube/transport/credentials.js';
import type { Logger } from '../kube/log.js';
import { Transport } from '../kube/transport/transport.js';
import type { CommonConfig } from './config/config.js';
import { HistoryGuard } from '../kube/informers/history-guard.js';
import { InformerRegistry } from '../kube/informers/informers.js';
import { createLogger } from './log.js';
import { type Metrics, createMetrics } from './metrics.js';
import { VERSION } from './version.js';

/** What the components of one process share. */
export interface ProcessContext {
  readonly client: Client;
  readonly informers: InformerRegistry;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly random: Random;
}

/** The context of a whole process. */
export interface MainContext extends ProcessContext {
  readonly history: HistoryGuard;
}

/**
 * Connections for requests, of which one group gets half: with 16, ipam deletes leases more slowly, and live reads of the webhook wait for each
 * other. Default: that of the transport, because there are many agents.
 */
export const CONNECTIONS = { ipam: 64, webhook: 64, all: 64 };

/** @throws {Error} if there are no usable credentials for a cluster */
export async function createContext(
  process: string,
  config: Pick<CommonConfig, 'kubeconfig' | 'logLevel'>,
): Promise<MainContext> {
  const log = createLogger(config.logLevel, process);
  const metrics = createMetrics(process, VERSION);
  const clock = systemClock;
  const random = Math.random;
  const credentials = await loadCredentials({ kubeconfig: config.kubeconfig });
  const userAgent = `holdfast-${process}/${VERSION}`;
  const { [process]: connections }: Partial<Record<string, number>> = CONNECTIONS;
  const options = {
    userAgent,
    metrics: metrics.kube,
    clock,
    random,
    ...(connections !== undefined && { connections }),
  };
  const transport = new Transport(credentials, options);
  const client = new Client(transport);
  const history = new HistoryGuard(client, log);
  const informers = new InformerRegistry({ client, log, metrics: metrics.kube, clock, random, history });
  return { client, informers, log, metrics, clock, random, history };
}

/** Closes what the context keeps open, after its components have stopped. */
export async function closeContext(context: ProcessContext): Promise<void> {
  await context.informers.stop();
  await context.client.transport.close();
}

/** A part of a process that starts, reports whether it is ready, and stops. */
export interface Component {
  readonly name: string;
  /** Resolves when the component runs, which may be before it is ready. */
  start(): Promise<void>;
  /** Finishes current work, accepts no more, and leaves nothing running. */
  stop(): Promise<void>;
  /** @returns undefined if it is ready, otherwise why not */
  ready?(): string | undefined;
  /** @returns what an administrator must correct although the component is ready, if anything */
  notice?(): string | undefined;
  /** Takes a function that ends the process, for a component that only a restart repairs. Called before the start. */
  onFatal?(fail: (error: unknown) => void): void;
}
