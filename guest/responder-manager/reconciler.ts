import type { Pool } from '../../addressing/pool/pool.js';
import { isAdminPool } from '../../api/address-pool.js';
import { EventReason } from '../../api/event-reasons.js';
import { type KubeObject, byAge, objectKey } from '../../api/meta.js';
import { RESPONDERS_NAMESPACE, RESPONDER_CONTENT_ANNOTATION } from '../../api/names.js';
import { poolEventSubject } from '../../cluster/event-subjects.js';
import { identityMetadataOf, pickKeys } from '../../cluster/metadata.js';
import type { Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { isAlreadyExists, isRejected, messageOf } from '../../kube/errors.js';
import type { EventRecorder } from '../../kube/events.js';
import type { InformerRegistry, WatchSpec } from '../../kube/informers/informers.js';
import { IPAM_CLAIMS, PODS, POD_DISRUPTION_BUDGETS, STATEFUL_SETS } from '../../kube/resources.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import { type GuestConfig, responderStalenessMs } from '../../process/config/guest-config.js';
import type { GuestMetrics } from '../metrics.js';
import type { GuestViews, Reconciler } from '../views.js';
import type { ResponderSettings, StatefulSet } from './objects.js';
import { type ObservedResponders, type ResponderAction, planResponders, poolsWithResponders } from './plan.js';

/** The only key: responders of all pools are planned together. */
const KEY = 'responders';
/** Written as one operation, because a merge would keep what the new template lacks. */
const CONTENT_PATH = `/metadata/annotations/${RESPONDER_CONTENT_ANNOTATION.replace('/', '~1')}`;

interface ResponderReconcilerDeps {
  readonly views: GuestViews;
  readonly informers: InformerRegistry;
  readonly client: Pick<Client, 'create' | 'patch' | 'delete' | 'find'>;
  readonly config: GuestConfig;
  readonly clock: Pick<Clock, 'now'>;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly metrics: Pick<GuestMetrics, 'respondersWanted'>;
}

/** Runs two responders for each administrator's pool with `spec.guest.dhcp`. */
export class ResponderReconciler implements Reconciler {
  readonly name = 'responders';
  readonly workers = 1;
  readonly #deps: ResponderReconcilerDeps;
  readonly #own;
  /** The image of this process, read once. */
  #image: OwnImage | undefined;

  constructor(deps: ResponderReconcilerDeps) {
    this.#deps = deps;
    const { informers } = deps;
    this.#own = {
      sets: informers.get(RESPONDER_SETS),
      budgets: informers.get(RESPONDER_BUDGETS),
      pods: informers.get(RESPONDER_PODS),
    };
  }

  listen(add: (keys: Iterable<string>) => void): void {
    const { watched, directory } = this.#deps.views;
    const addKey = () => add([KEY]);
    for (const informer of Object.values(this.#own)) informer.onChange(addKey);
    directory.onChange(addKey);
    watched.networks.onChange(({ object }) => isOurs(object) && addKey());
    watched.claims.onChange(({ object }) => isOurs(object) && addKey());
  }

  allKeys(): readonly string[] {
    return [KEY];
  }

  createSync(): Sync {
    this.#image = undefined;
    return (_key: string, signal: AbortSignal) => this.#sync(signal);
  }

  async #sync(signal: AbortSignal): Promise<SyncResult> {
    const { views, config, clock, metrics } = this.#deps;
    const { pools, unreadable } = this.#pools();
    const { maxResponderPools: maxPools } = config;
    metrics.respondersWanted(poolsWithResponders({ pools, maxPools }).map(({ name }) => name));
    const { sets, budgets, pods } = this.#own;
    const claims = views.watched.claims.cache.inNamespace(RESPONDERS_NAMESPACE);
    // most clusters have no responders, and need no image for them
    if (pools.length + sets.cache.size + budgets.cache.size + claims.length === 0) return undefined;
    const nads = views.watched.networks.cache.list().filter(isOurs);
    const observed: ObservedResponders = {
      pools,
      unreadable,
      nads: new Map(nads.map((nad) => [objectKey(nad), nad])),
      sets: sets.cache.list(),
      budgets: budgets.cache.list(),
      claims,
      pods: pods.cache.list(),
      settings: await this.#settings(),
      maxPools,
    };
    const actions = await runInSlices(planResponders(observed), clock, signal);
    const failures: unknown[] = [];
    // a pool that lacks a right or quota must not stop the others
    for (const action of actions ?? []) {
      try {
        await this.#apply(action);
      } catch (error) {
        failures.push(error);
        // such as a policy that refuses the image
        if ('pool' in action && isRejected(error))
          this.#report(
            action.pool,
            EventReason.ResponderRefused,
            `The API server refuses the responders of AddressPool ${action.pool.name}: ${messageOf(error)}`,
          );
      }
    }
    if (failures.length > 0) throw failures[0];
    return undefined;
  }

  /** Derived pools have no responders: tenants write them. */
  #pools(): { pools: Pool[]; unreadable: string[] } {
    const { watched, directory } = this.#deps.views;
    const pools: Pool[] = [];
    const unreadable: string[] = [];
    const admins = watched.pools.cache.list().filter(isAdminPool);
    for (const { metadata } of admins.toSorted(byAge)) {
      const state = directory.stateOf(metadata.name);
      if (state?.kind === 'served' && state.pool.guest?.dhcp !== undefined) pools.push(state.pool);
      if (state?.kind === 'invalid') unreadable.push(metadata.uid ?? '');
    }
    return { pools, unreadable };
  }

  async #settings(): Promise<ObservedResponders['settings']> {
    const { logLevel, responderTemplate: template } = this.#deps.config;
    const maxStalenessMs = responderStalenessMs(this.#deps.config);
    this.#image ??= await this.#readImage();
    return this.#image === undefined
      ? {
          problem:
            'the image of responders is unknown: set the flag --responder-image of guest, or POD_NAME to the name of its pod',
        }
      : { ...this.#image, maxStalenessMs, logLevel, template };
  }

  /** Kustomize and Helm replace images of containers, but not in flags. */
  async #readImage(): Promise<OwnImage | undefined> {
    const { responderImage, podName, namespace } = this.#deps.config;
    if (responderImage !== undefined) return { image: responderImage };
    if (podName === undefined) return undefined;
    const pod = (await this.#deps.client.find(PODS, { namespace, name: podName })) as PodWithImage | undefined;
    // service meshes and patches of kustomize put sidecars first
    const container = pod?.spec?.containers?.find(({ name }) => name === 'guest' || name === 'all');
    if (container === undefined) return undefined;
    const { image, imagePullPolicy } = container;
    const { serviceAccountName, imagePullSecrets = [] } = pod?.spec ?? {};
    // that of OpenShift for this account exists only here, and would keep the account of responders from using its own
    const shared = imagePullSecrets.filter(({ name }) => !name.startsWith(`${serviceAccountName}-dockercfg-`));
    return { image, ...(imagePullPolicy && { imagePullPolicy }), imagePullSecrets: shared };
  }

  async #apply(action: ResponderAction): Promise<void> {
    const { client } = this.#deps;
    switch (action.kind) {
      case 'create-claim':
        return unlessExists(client.create(IPAM_CLAIMS, action.claim));
      case 'create-set':
        return unlessExists(client.create(STATEFUL_SETS, action.set));
      case 'update-set':
        await client.patch(STATEFUL_SETS, refOf(action.set), { type: 'json', operations: updateOf(action) });
        return;
      case 'create-budget':
        return unlessExists(client.create(POD_DISRUPTION_BUDGETS, action.budget));
      case 'delete-set':
        await client.delete(STATEFUL_SETS, refOf(action.object), {
          ...uidOf(action.object),
          propagationPolicy: 'Background',
        });
        return;
      case 'delete-budget':
        await client.delete(POD_DISRUPTION_BUDGETS, refOf(action.object), uidOf(action.object));
        return;
      case 'delete-claim':
        await client.delete(IPAM_CLAIMS, refOf(action.object), versionOf(action.object));
        return;
      case 'report':
        this.#report(action.pool, action.reason, action.message);
    }
  }

  #report(pool: Pool, reason: EventReason, message: string): void {
    this.#deps.events.event(poolEventSubject(pool), 'Warning', reason, message);
  }
}

type OwnImage = Pick<ResponderSettings, 'image' | 'imagePullPolicy' | 'imagePullSecrets'>;

interface PodWithImage extends KubeObject {
  spec?: {
    containers?: { name: string; image: string; imagePullPolicy?: string }[];
    imagePullSecrets?: { name: string }[];
    serviceAccountName?: string;
  };
}

function isOurs({ metadata }: KubeObject): boolean {
  return metadata.namespace === RESPONDERS_NAMESPACE;
}

function refOf({ metadata: { name, namespace } }: KubeObject) {
  return { name, namespace };
}

function uidOf({ metadata: { uid } }: KubeObject) {
  return { uid };
}

/** If a pod has come to use a claim meanwhile, ipam has written its status, and the claim stays. */
function versionOf({ metadata: { uid, resourceVersion } }: KubeObject) {
  return { uid, resourceVersion };
}

function updateOf({ set, uid }: { set: StatefulSet; uid: string | undefined }) {
  const content = set.metadata.annotations?.[RESPONDER_CONTENT_ANNOTATION];
  return [
    { op: 'test' as const, path: '/metadata/uid', value: uid ?? '' },
    { op: 'replace' as const, path: '/spec/template', value: set.spec.template },
    { op: 'replace' as const, path: '/spec/replicas', value: set.spec.replicas },
    { op: 'add' as const, path: CONTENT_PATH, value: content },
  ];
}

/** The cache lags behind an own write. */
async function unlessExists(write: Promise<unknown>): Promise<void> {
  try {
    await write;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

/** Of objects in the responders' namespace: their identity, and which content they were written with. */
const WRITTEN = { namespace: RESPONDERS_NAMESPACE, transform: transformWritten };
export const RESPONDER_SETS: WatchSpec<KubeObject> = { resource: STATEFUL_SETS, ...WRITTEN };
const RESPONDER_BUDGETS: WatchSpec<KubeObject> = { resource: POD_DISRUPTION_BUDGETS, ...WRITTEN };
const RESPONDER_PODS: WatchSpec<KubeObject> = { resource: PODS, ...WRITTEN };

function transformWritten({ metadata }: KubeObject): KubeObject {
  const annotations = pickKeys(metadata.annotations, [RESPONDER_CONTENT_ANNOTATION]);
  return { metadata: { ...identityMetadataOf(metadata), ...(annotations && { annotations }) } };
}
