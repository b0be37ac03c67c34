import { join } from 'node:path';
import pino from 'pino';
import { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { messageOf } from '../../kube/errors.js';
import { NODES } from '../../kube/resources.js';
import { Transport } from '../../kube/transport/transport.js';
import type { Logger } from '../../kube/log.js';
import type { ControlPlane } from '../control-plane/control-plane.js';
import { VIRT_HANDLER } from '../control-plane/kubevirt.js';
import { writeServiceAccountKubeconfig } from '../control-plane/service-accounts.js';
import { repeatReport } from '../node/heartbeat.js';
import { heartbeatAnnotations, kubeVirtDevices, kubeVirtLabels } from '../node/node-object.js';
import type { GuestNetworks } from '../node/sandbox-networks.js';
import { VirtHandlers } from '../node/virt-handlers.js';
import { Switches } from '../switches.js';
import type { RealNode } from './real-node.js';

const HEARTBEAT_MS = 5_000;

/** The simulated virt-handlers of real nodes: their labels, devices and heartbeats, and the life of VMIs. */
export class NodeVirtHandlers {
  readonly #plane: ControlPlane;
  readonly #nodes: readonly RealNode[];
  readonly #handlers: VirtHandlers;
  readonly #transport: Transport;
  readonly #log: Logger;
  readonly #abort = new AbortController();
  #beating: Promise<void> | undefined;

  private constructor(plane: ControlPlane, nodes: readonly RealNode[], guests: GuestNetworks, transport: Transport) {
    this.#plane = plane;
    this.#nodes = nodes;
    this.#transport = transport;
    this.#log = pino({ base: null }, pino.destination({ dest: join(plane.logDir, 'virt-handlers.log'), sync: true }));
    this.#handlers = new VirtHandlers({
      client: plane.client,
      handlerClient: new Client(transport),
      switches: new Switches(),
      guests,
      isNodeUp: (name) => nodes.some((node) => node.name === name && node.isOn),
      startErrorOf: () => undefined,
      clock: systemClock,
      log: this.#log,
    });
  }

  static async start(
    plane: ControlPlane,
    nodes: readonly RealNode[],
    guests: GuestNetworks,
  ): Promise<NodeVirtHandlers> {
    const kubeconfig = await writeServiceAccountKubeconfig(plane, VIRT_HANDLER);
    const handlers = new NodeVirtHandlers(plane, nodes, guests, new Transport(await loadCredentials({ kubeconfig })));
    await handlers.#report();
    await handlers.#handlers.start();
    handlers.#handlers.work();
    handlers.#beating = handlers.#beat();
    return handlers;
  }

  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#beating;
    await this.#handlers.stop();
    await this.#transport.close();
  }

  #beat(): Promise<void> {
    const report = async () => {
      this.#handlers.resync(); // a node may have come back
      await this.#report();
    };
    return repeatReport({ clock: systemClock, everyMs: HEARTBEAT_MS, signal: this.#abort.signal }, report, (error) =>
      this.#log.warn({ error: messageOf(error) }, 'heartbeat failed'),
    );
  }

  /** kubelet forgets the devices when it starts. */
  async #report(): Promise<void> {
    const { client } = this.#plane;
    await Promise.all(
      this.#nodes
        .filter(({ isOn }) => isOn)
        .map(async ({ name }) => {
          const metadata = { labels: kubeVirtLabels(), annotations: heartbeatAnnotations(systemClock.wall()) };
          await client.patch(NODES, { name }, { type: 'merge', body: { metadata } });
          const status = { capacity: kubeVirtDevices, allocatable: kubeVirtDevices };
          await client.patch(NODES, { name }, { type: 'merge', body: { status } }, { subresource: 'status' });
        }),
    );
  }
}
