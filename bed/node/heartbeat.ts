import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isAlreadyExists, isNotFound, messageOf } from '../../kube/errors.js';
import { LEASES } from '../../kube/leader-election.js';
import type { Logger } from '../../kube/log.js';
import { NODES } from '../../kube/resources.js';
import type { Switches } from '../switches.js';
import { heartbeatAnnotations, nodeLease, nodeObject, nodeStatus } from './node-object.js';

/** As kubelets do. Each report costs all that watch nodes some milliseconds of CPU time. */
const EVERY_MS = 10_000;

/** Reports again and again until the signal aborts. Tests stop the API server, so a report may fail. */
export async function repeatReport(
  { clock, everyMs, signal }: { clock: Clock; everyMs: number; signal: AbortSignal },
  report: () => Promise<void>,
  onError: (error: unknown) => void,
): Promise<void> {
  for (;;) {
    await clock.sleep(everyMs, signal);
    if (signal.aborted) return;
    await report().catch(onError);
  }
}

interface HeartbeatOptions {
  /** An administrator's client, although real kubelets have their own identities. */
  readonly client: Client;
  readonly node: string;
  readonly switches: Switches;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Registers one node and sends its heartbeats until it is lost. */
export class Heartbeat {
  readonly #options: HeartbeatOptions;
  readonly #abort = new AbortController();
  #beating: Promise<void> | undefined;
  #reportedUp = true;
  #reports: Promise<void> = Promise.resolve();

  constructor(options: HeartbeatOptions) {
    this.#options = options;
  }

  /** Resolves when the node is Ready. */
  async start(): Promise<void> {
    const { client, node, clock } = this.#options;
    try {
      await client.create(NODES, nodeObject(node, clock.wall()));
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    await Promise.all([this.#report(), this.#renewLease()]);
    this.#beating = this.#beat();
  }

  /**
   * Reports at once that the node was lost or came back. The node lifecycle controller would report a lost node 50 seconds later.
   * It evicts the pods because of this report.
   */
  async resync(): Promise<void> {
    const { switches, node, log } = this.#options;
    const isUp = !switches.isLost(node);
    if (isUp === this.#reportedUp) return;
    this.#reportedUp = isUp;
    log.info({ node }, isUp ? 'node is back' : 'node is lost');
    await Promise.all([this.#report(), ...(isUp ? [this.#renewLease()] : [])]);
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#beating;
  }

  #beat(): Promise<void> {
    const { node, clock, log } = this.#options;
    const { signal } = this.#abort;
    return repeatReport(
      { clock, everyMs: EVERY_MS, signal },
      () => this.#sendHeartbeat(),
      (error) => log.warn({ node, error: messageOf(error) }, 'heartbeat failed'),
    );
  }

  async #sendHeartbeat(): Promise<void> {
    const { client, node, switches, clock } = this.#options;
    if (switches.isLost(node)) return;
    const body = { metadata: { annotations: heartbeatAnnotations(clock.wall()) } };
    const annotated = client.patch(NODES, { name: node }, { type: 'merge', body });
    // after an outage of the API server, the node may count as lost until its kubelet reports again
    await Promise.all([annotated, this.#renewLease(), this.#report()]);
  }

  /** Writes reports one after the other, so that the last one is true. */
  #report(): Promise<void> {
    const report = this.#reports.then(async () => {
      const { client, node, clock, switches } = this.#options;
      const body = { status: nodeStatus(node, !switches.isLost(node), clock.wall()) };
      await client.patch(NODES, { name: node }, { type: 'strategic', body }, { subresource: 'status' });
    });
    this.#reports = report.catch(() => undefined);
    return report;
  }

  async #renewLease(): Promise<void> {
    const { client, node, clock } = this.#options;
    const lease = nodeLease(node, clock.wall());
    const ref = { namespace: 'kube-node-lease', name: node };
    try {
      await client.patch(LEASES, ref, { type: 'merge', body: { spec: lease.spec } });
    } catch (error) {
      if (!isNotFound(error)) throw error;
      await client.create(LEASES, lease);
    }
  }
}
