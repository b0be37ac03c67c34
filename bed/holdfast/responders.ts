import { join } from 'node:path';
import pino from 'pino';
import { LEASE_POOL, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { isBeingDeleted } from '../../api/meta.js';
import { isTerminal, type Pod } from '../../api/pod.js';
import { systemClock } from '../../kube/clock.js';
import { Informer } from '../../kube/informers/informer.js';
import { PODS } from '../../kube/resources.js';
import type { Bed } from '../bed.js';
import type { RunningCommand, WireLocation } from '../network/wire.js';
import type { BedWire } from '../node/bed-wire.js';
import { HoldfastProcess } from './process.js';
import { startPackets } from './packets.js';

/** The service account of responders in the shipped manifests. */
const ACCOUNT = 'holdfast-responder';

/** The two programs of a responder's pod. */
export interface Responder {
  /** Where its packets are sent and received. */
  readonly location: WireLocation;
  readonly table: HoldfastProcess;
  /** Starts the process with the table again. @param args flags that replace those of the pod */
  restartTable(options?: { kubeconfig?: string; args?: readonly string[] }): Promise<void>;
  /** Ends both programs at once. */
  kill(): Promise<void>;
  /** Starts both programs again after {@link kill}. */
  start(): Promise<void>;
}

/** Runs the programs of responders' pods, in the network namespaces that the simulated nodes attach for them. */
export class Responders {
  readonly #bed: Bed & { readonly wire: BedWire };
  readonly #pods: Informer<Pod>;
  /** By UID of the pod. */
  readonly #running = new Map<string, Promise<Responder>>();
  #kubeconfig: Promise<string> | undefined;

  constructor(bed: Bed & { readonly wire: BedWire }) {
    this.#bed = bed;
    const options = { namespace: RESPONDERS_NAMESPACE, log: pino({ enabled: false }), clock: systemClock };
    this.#pods = new Informer<Pod>(bed.client, PODS, options);
    this.#pods.onChange(({ type, object }) => {
      if (type === 'removed' || isBeingDeleted(object) || isTerminal(object)) this.#end(object);
      else this.#follow(object);
    });
  }

  async start(): Promise<void> {
    this.#pods.start();
    await this.#pods.synced();
  }

  /** Stops all of them at once. */
  async stop(): Promise<void> {
    await this.#pods.stop();
    await Promise.allSettled([...this.#running.values()].map(async (running) => (await running).kill()));
  }

  /** The pods of responders of a pool that run, by name. */
  pods(pool: string): readonly Pod[] {
    const running = this.#pods.cache.list().filter(({ metadata }) => this.#running.has(metadata.uid ?? ''));
    return running
      .filter(({ metadata }) => metadata.labels?.[LEASE_POOL] === pool)
      .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
  }

  /** The programs of a pod. */
  of(pod: Pod): Promise<Responder> {
    const found = this.#running.get(pod.metadata.uid ?? '');
    if (found === undefined) throw new Error(`the responder ${pod.metadata.name} does not run`);
    return found;
  }

  /** Path of the kubeconfig of the responders' service account. */
  kubeconfig(): Promise<string> {
    this.#kubeconfig ??= this.#bed.serviceAccountKubeconfig(RESPONDERS_NAMESPACE, ACCOUNT);
    return this.#kubeconfig;
  }

  #follow(pod: Pod): void {
    const uid = pod.metadata.uid ?? '';
    if (pod.status?.phase !== 'Running' || this.#running.has(uid)) return;
    const running = this.#launch(pod);
    running.catch((error: unknown) => console.error(`      ${pod.metadata.name}: ${String(error)}`));
    this.#running.set(uid, running);
  }

  #end(pod: Pod): void {
    const uid = pod.metadata.uid ?? '';
    this.#running.get(uid)?.then(
      ({ table }) => table.stop(),
      () => undefined, // it was reported
    );
    this.#running.delete(uid);
  }

  async #launch(pod: Pod): Promise<Responder> {
    const { name, uid = '' } = pod.metadata;
    const { wire } = this.#bed.wire;
    const location = this.#bed.wire.locationOf(pod);
    const socket = join(this.#bed.dataDir, `${uid.slice(0, 8)}.sock`);
    const table = new HoldfastProcess(this.#bed, 'responder', { webhook: 0, ipam: 0 });
    const own = [
      ...argumentsOf(pod).filter((arg) => /^--(pool|max-staleness)=/.test(arg)),
      `--packet-socket=${socket}`,
      `--pod-name=${name}`,
      `--namespace=${RESPONDERS_NAMESPACE}`,
    ];
    const startTable: Responder['restartTable'] = async ({ kubeconfig, args = [] } = {}) => {
      const kept = own.filter((arg) => !args.some((other) => other.split('=')[0] === arg.split('=')[0]));
      const options = { kubeconfig: kubeconfig ?? (await this.kubeconfig()), args: [...kept, ...args], instance: name };
      await table.start(options);
    };
    let packets: RunningCommand | undefined;
    const start = async () => {
      packets = await startPackets(wire, location, socket);
      await startTable();
    };
    await start();
    return {
      location,
      table,
      restartTable: async (options) => {
        await table.stop();
        await startTable(options);
      },
      kill: async () => {
        await Promise.all([packets?.stop(), table.kill()]);
      },
      start,
    };
  }
}

function argumentsOf(pod: Pod): string[] {
  const { containers = [] } = (pod as { spec?: { containers?: { name: string; args?: string[] }[] } }).spec ?? {};
  return containers.find(({ name }) => name === 'table')?.args ?? [];
}
