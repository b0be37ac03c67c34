import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../../../../api/kubevirt.js';
import { type KubeObject, objectKey } from '../../../../api/meta.js';
import type { Listers } from '../../observe.js';
import { createSync } from '../../sync.js';
import { allKeys, keysOfClaim, keysOfLauncher, keysOfNad, keysOfNamespace } from '../../workload-keys.js';
import { BlockedWorkloads } from '../../waiting-workloads.js';
import { CreatedClaims } from '../../created-claims.js';
import { LAUNCHER_INDEXES, transformLauncher } from '../../../caches.js';
import { CLAIM_INDEXES, VMI_INDEXES, VM_INDEXES } from '../../../../cluster/watch-specs.js';
import {
  transformClaim,
  transformNad,
  transformNamespace,
  transformVm,
  transformVmi,
} from '../../../../cluster/transforms.js';
import { Cache } from '../../../../kube/cache.js';
import { Client } from '../../../../kube/client.js';
import { StatusError, TransportError } from '../../../../kube/errors.js';
import type { ObjectChange } from '../../../../kube/informer.js';
import { syncDependencies } from '../sync-dependencies.js';
import { KINDS, type Kind, type ClaimsWorld, timeOf } from './world.js';
import { WorldApi } from './world-api.js';

export interface Crash {
  /** How many writes succeed before all requests fail. */
  writes: number;
  /** A new process starts with new caches; otherwise the same one continues. */
  restart: boolean;
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
  /** Keys whose last sync asked for a retry. */
  readonly retries = new Set<string>();
  readonly api: WorldApi;
  readonly #world: ClaimsWorld;
  readonly #client: Client;
  #caches = emptyCaches();
  #seen: Record<Kind, number>;
  #waiters = new BlockedWorkloads();
  #created = new CreatedClaims({ now: () => 0 });

  constructor(world: ClaimsWorld) {
    this.#world = world;
    this.api = new WorldApi(world);
    this.#client = new Client(this.api);
    this.#seen = atStart();
    this.restart();
  }

  /** Starts a new process: it lists all kinds in their latest version. */
  restart(): void {
    this.#caches = emptyCaches();
    this.#waiters = new BlockedWorkloads();
    this.#created = new CreatedClaims({ now: () => 0 });
    this.#seen = atStart();
    this.queue.clear();
    this.retries.clear();
    for (const kind of KINDS) {
      for (const object of this.#world.list(kind)) this.#store(kind, object);
      this.#seen[kind] = this.#world.log(kind).length;
    }
    for (const key of allKeys(this.#caches)) this.queue.add(key);
  }

  /** Delivers some watch events of a kind. Returns whether there were any. */
  deliver(kind: Kind, count: number): boolean {
    const events = this.#world.log(kind).slice(this.#seen[kind], this.#seen[kind] + count);
    this.#seen[kind] += events.length;
    for (const { type, object } of events) {
      const change = type === 'DELETED' ? this.#remove(kind, object) : this.#store(kind, object);
      if (kind === 'claims') this.#created.shown(change.object as IPAMClaim);
      for (const key of this.#keysOf(kind, change)) this.queue.add(key);
    }
    return events.length > 0;
  }

  deliverAll(): boolean {
    return KINDS.map((kind) => this.deliver(kind, Infinity)).some(Boolean);
  }

  switchGate(open: boolean): void {
    this.gateOpen = open;
    for (const key of allKeys(this.#caches)) this.queue.add(key);
  }

  /** Lets the time pass for which restored claims wait. */
  expireRestored(): void {
    this.#elapsedMs += RESTORE_WAIT_MS;
    for (const key of allKeys(this.#caches)) this.queue.add(key);
  }

  /** Syncs the workload that has been queued longest. */
  async syncNext(crash?: Crash): Promise<boolean> {
    const [key] = this.queue.size > 0 ? this.queue : this.retries;
    if (key === undefined) return false;
    this.queue.delete(key);
    this.retries.delete(key);
    this.vmiRead = undefined;
    let writes = 0;
    this.api.before = ({ method, path }) => {
      this.meanwhile();
      if (path.includes('/virtualmachineinstances/')) this.vmiRead = this.#world.get('vmis', key);
      if (method !== 'GET') writes++;
      if (crash !== undefined && writes > crash.writes) {
        throw new TransportError('aborted', 'the controller has crashed');
      }
    };
    await this.#sync(key);
    if (crash?.restart) this.restart();
    return true;
  }

  async #sync(key: string): Promise<void> {
    const listers = this.#caches;
    const sync = createSync({
      ...syncDependencies(listers, this.#client),
      blockedWorkloads: this.#waiters,
      createdClaims: this.#created,
      isGateOpen: () => this.gateOpen,
      restoreWaitMs: RESTORE_WAIT_MS,
      clock: { now: () => Date.parse(timeOf(this.#world.version)) + this.#elapsedMs },
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

  #store(kind: Kind, object: KubeObject): ObjectChange<KubeObject> {
    const small = SHRINK[kind](object);
    const before = (this.#caches[kind] as Cache<KubeObject>).set(small);
    return before === undefined ? { type: 'added', object: small } : { type: 'changed', object: small, before };
  }

  #remove(kind: Kind, object: KubeObject): ObjectChange<KubeObject> {
    const before = this.#caches[kind].delete(objectKey(object)) ?? SHRINK[kind](object);
    return { type: 'removed', object: before, before };
  }
}

type Caches = {
  [K in keyof Listers]: Listers[K] extends { get(key: string): infer S } ? Cache<NonNullable<S> & KubeObject> : never;
};

const SHRINK = {
  vms: transformVm,
  vmis: transformVmi,
  launchers: transformLauncher,
  claims: transformClaim,
  networks: transformNad,
  namespaces: transformNamespace,
} as unknown as Record<Kind, (object: KubeObject) => KubeObject>;

function emptyCaches(): Caches {
  return {
    vms: new Cache(VM_INDEXES),
    vmis: new Cache(VMI_INDEXES),
    launchers: new Cache(LAUNCHER_INDEXES),
    claims: new Cache(CLAIM_INDEXES),
    networks: new Cache(),
    namespaces: new Cache(),
  };
}

function atStart(): Record<Kind, number> {
  return { vms: 0, vmis: 0, launchers: 0, claims: 0, networks: 0, namespaces: 0 };
}
