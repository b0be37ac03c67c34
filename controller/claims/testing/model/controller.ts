import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../../../api/kubevirt.js';
import { type KubeObject, objectKey } from '../../../../api/meta.js';
import { createSync } from '../../sync.js';
import { allKeys, keysOfClaim, keysOfLauncher, keysOfNad, keysOfNamespace } from '../../workload-keys.js';
import { BlockedWorkloads } from '../../waiting-workloads.js';
import { CreatedClaims } from '../../created-claims.js';
import { LAUNCHER_INDEXES, transformLauncher } from '../../../caches.js';
import { CLAIM_WATCH, NAD_WATCH, NAMESPACE_WATCH, VMI_WATCH, VM_WATCH } from '../../../../cluster/watch-specs.js';
import { Client } from '../../../../kube/client.js';
import { StatusError, TransportError } from '../../../../kube/errors.js';
import type { ObjectChange } from '../../../../kube/informers/informer.js';
import { PODS } from '../../../../kube/resources.js';
import type { ApiRequest } from '../../../../kube/transport/transport.js';
import { LaggingInformer } from '../../../../kube/testing/lagging-informer.js';
import { syncDependencies } from '../sync-dependencies.js';
import { KINDS, type Kind, type ClaimsWorld, timeOf } from './world.js';
import { WorldApi } from './world-api.js';

export interface Crash {
  /** How many writes succeed before all requests fail. */
  writes: number;
  /** A new process starts with new caches; otherwise the same one continues. */
  restart: boolean;
}

/** A write of a sync that gets no answer: it has been carried out, or arrives later. */
export interface LostAnswer {
  /** How many writes of the sync are answered before it. */
  writes: number;
  fate: 'done' | 'late';
}

/** Longer than any run takes. */
const RESTORE_WAIT_MS = 3_600_000;

/** The controller in a model world: real decisions and writes, with caches that lag behind as much as the test wants. */
export class ModelController {
  gateOpen = true;
  /** How far the controller's clock is ahead of the world. */
  #elapsedMs = 0;
  /** Called before each request, so that other events can happen there. */
  meanwhile: () => void = () => undefined;
  readonly queue = new Set<string>();
  /** The VMI that the current or last sync has read live. */
  vmiRead: VirtualMachineInstance | undefined;
  /** Writes without an answer that have not arrived yet. */
  readonly late: ApiRequest[] = [];
  /** Keys whose last sync asked for a retry. */
  readonly retries = new Set<string>();
  readonly api: WorldApi;
  readonly #world: ClaimsWorld;
  readonly #client: Client;
  #watches!: ReturnType<typeof watchesOf>;
  #waiters = new BlockedWorkloads();
  #created = new CreatedClaims({ now: () => 0 });

  constructor(world: ClaimsWorld) {
    this.#world = world;
    this.api = new WorldApi(world);
    this.#client = new Client(this.api);
    this.restart();
  }

  /** Starts a new process: it lists all kinds in their latest version. */
  restart(): void {
    this.#watches = watchesOf(this.#world);
    this.#waiters = new BlockedWorkloads();
    this.#created = new CreatedClaims({ now: () => 0 });
    for (const kind of KINDS) {
      const informer = this.#watches[kind] as LaggingInformer<KubeObject>;
      informer.list();
      informer.onChange((change) => this.#observe(kind, change));
    }
    this.queue.clear();
    this.retries.clear();
    this.#addAll();
  }

  /** Delivers some watch events of a kind. Returns whether there were any. */
  deliver(kind: Kind, count: number): boolean {
    return this.#watches[kind].deliver(count);
  }

  deliverAll(): boolean {
    return KINDS.map((kind) => this.deliver(kind, Infinity)).some(Boolean);
  }

  switchGate(open: boolean): void {
    this.gateOpen = open;
    this.#addAll();
  }

  #addAll(): void {
    for (const key of allKeys(this.#caches)) if (key !== undefined) this.queue.add(key);
  }

  /** Lets the time pass for which restored claims wait. */
  expireRestored(): void {
    this.#elapsedMs += RESTORE_WAIT_MS;
    this.#addAll();
  }

  /** Serves the oldest late write. Nobody learns whether it is refused. @returns undefined if there is none */
  arriveLate(): ApiRequest | undefined {
    const request = this.late.shift();
    try {
      if (request !== undefined) this.api.serve(request);
    } catch (error) {
      if (!(error instanceof StatusError)) throw error;
    }
    return request;
  }

  /** Syncs the workload that has been queued longest. */
  async syncNext(crash?: Crash, lost?: LostAnswer): Promise<boolean> {
    const [key] = this.queue.size > 0 ? this.queue : this.retries;
    if (key === undefined) return false;
    this.queue.delete(key);
    this.retries.delete(key);
    this.vmiRead = undefined;
    let writes = 0;
    this.api.before = (request) => {
      const { method, path } = request;
      this.meanwhile();
      if (path.includes('/virtualmachineinstances/')) this.vmiRead = this.#world.get('vmis', key);
      if (method !== 'GET') writes++;
      if (crash !== undefined && writes > crash.writes) {
        throw new TransportError('aborted', 'the controller has crashed');
      }
      if (lost === undefined || method === 'GET' || writes !== lost.writes + 1) return undefined;
      if (lost.fate === 'late') this.late.push(request);
      return { error: new TransportError('deadline', 'no answer'), applied: lost.fate === 'done' };
    };
    await this.#sync(key);
    if (crash?.restart) this.restart();
    return true;
  }

  get #caches() {
    const { vms, vmis, launchers, claims, networks, namespaces } = this.#watches;
    return {
      ...{ vms: vms.cache, vmis: vmis.cache, launchers: launchers.cache },
      ...{ claims: claims.cache, networks: networks.cache, namespaces: namespaces.cache },
    };
  }

  #observe(kind: Kind, change: ObjectChange<KubeObject>): void {
    if (kind === 'claims') this.#created.shown(change.object as IPAMClaim);
    for (const key of this.#keysOf(kind, change)) this.queue.add(key);
  }

  async #sync(key: string): Promise<void> {
    const listers = this.#caches;
    const now = () => Date.parse(timeOf(this.#world.version)) + this.#elapsedMs;
    const sync = createSync({
      ...syncDependencies(listers, this.#client),
      blockedWorkloads: this.#waiters,
      createdClaims: this.#created,
      isGateOpen: () => this.gateOpen,
      restoreWaitMs: RESTORE_WAIT_MS,
      clock: { now, wall: now },
    });
    try {
      const result = await sync(key);
      if (result !== undefined && 'retry' in result) this.retries.add(key);
    } catch (error) {
      if (!(error instanceof StatusError || error instanceof TransportError)) throw error;
      this.retries.add(key);
    }
  }

  #keysOf(kind: Kind, change: ObjectChange<KubeObject>): string[] {
    const caches = this.#caches;
    switch (kind) {
      case 'vms':
      case 'vmis':
        return [objectKey(change.object)];
      case 'launchers':
        return keysOfLauncher(change, caches.claims);
      case 'claims':
        return keysOfClaim(change as Parameters<typeof keysOfClaim>[0], this.#waiters);
      case 'networks':
        return keysOfNad(change as Parameters<typeof keysOfNad>[0], caches, false);
      case 'namespaces':
        return keysOfNamespace(change, caches);
    }
  }
}

function watchesOf({ tracker }: ClaimsWorld) {
  return {
    vms: new LaggingInformer(tracker, VM_WATCH),
    vmis: new LaggingInformer(tracker, VMI_WATCH),
    launchers: new LaggingInformer(tracker, {
      resource: PODS,
      transform: transformLauncher,
      indexes: LAUNCHER_INDEXES,
    }),
    claims: new LaggingInformer(tracker, CLAIM_WATCH),
    networks: new LaggingInformer(tracker, NAD_WATCH),
    namespaces: new LaggingInformer(tracker, NAMESPACE_WATCH),
  };
}
