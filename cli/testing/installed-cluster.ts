import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID } from '../../api/names.js';
import type { ListOptions } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import { IPAM_CLAIMS, NAMESPACES, PODS } from '../../kube/resources.js';
import { type ObjectRef, type Resource, clusterResource } from '../../kube/resource.js';
import { apiError, checkPreconditions } from '../../test/api-errors.js';
import { mergePatch } from '../../test/merge-patch.js';
import { qualifiedName } from '../forbidden.js';
import { CRDS, DAEMON_SETS } from '../installation.js';
import { OWN_KINDS, STAGES } from '../uninstall/stages.js';
import type { UninstallDeps } from '../uninstall/uninstall.js';

/** The process is gone, wherever it was. */
export class ProcessKilled extends Error {}

/** For API servers to notice that a policy is gone: longer than the command waits without an error. */
const POLICY_LAG_MS = 8_000;
const KNOWN_KINDS: readonly Resource[] = [...STAGES.flatMap(({ kinds }) => kinds), ...OWN_KINDS, IPAM_CLAIMS, PODS];

/** The API server of a cluster with Holdfast, as far as `kubectl holdfast uninstall` uses it. */
export class InstalledCluster {
  readonly printed: string[] = [];
  readonly logged: string[] = [];
  readonly asked: string[] = [];
  /** What the user types; undefined: there is no terminal. */
  answer: string | undefined;
  /** `verb resource` that the user may not do. */
  readonly forbidden = new Set<string>();
  /** Plurals that the user may not list. */
  readonly unreadable = new Set<string>();
  /** Called before each list; may throw. */
  beforeList: () => void = () => undefined;
  /** Called before each write; may throw. */
  beforeWrite: (write: { verb: string; resource: Resource; name: string }) => void = () => undefined;
  /** Called after each write. */
  afterWrite: () => void = () => undefined;
  /** Called whenever the command waits. */
  onSleep: () => void = () => undefined;
  writes = 0;
  /** The process ends with this write. */
  killAfter: number | undefined;
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  #now = 1_000;
  #version = 0;
  #unguardedAt: number | undefined;

  /** @param objects with apiVersion and kind */
  constructor(objects: readonly KubeObject[]) {
    for (const object of objects) this.put(object);
  }

  put(object: KubeObject): void {
    const { apiVersion = '', kind = '' } = object;
    const known = KNOWN_KINDS.find((each) => each.kind === kind);
    const plural = known?.plural ?? { NetworkAttachmentDefinition: 'network-attachment-definitions' }[kind];
    this.#store(
      known ?? clusterResource(apiVersion, plural ?? `${kind.toLowerCase()}s`, kind),
      structuredClone(object),
    );
  }

  /** `Kind namespace/name` of all objects, sorted. */
  names(kind?: string): string[] {
    return [...this.#objects.values()]
      .flatMap((each) => [...each.values()])
      .filter((object) => kind === undefined || object.kind === kind)
      .map(({ kind: own = '', metadata }) => `${own} ${keyOf(metadata)}`)
      .sort();
  }

  has(kind: string, key: string): boolean {
    return [...this.#objects.values()].some((each) => each.get(key)?.kind === kind);
  }

  deps(): UninstallDeps {
    const client = {
      list: (resource: Resource, options?: ListOptions) => this.#list(resource, options, (object) => object),
      listAs: (resource: Resource, transform: (object: KubeObject) => unknown, options?: ListOptions) =>
        this.#list(resource, options, transform),
      create: (_resource: Resource, review: AccessReview) => {
        const { verb, resource, subresource } = review.spec.resourceAttributes;
        const name = subresource === undefined ? resource : `${resource}/${subresource}`;
        return Promise.resolve({ ...review, status: { allowed: !this.forbidden.has(`${verb} ${name}`) } });
      },
      patch: (resource: Resource, ref: ObjectRef, { body }: { body: KubeObject }) =>
        this.#write('patch', resource, ref, () => this.#patch(resource, ref, body)),
      delete: (resource: Resource, ref: ObjectRef, { uid }: { uid?: string } = {}) =>
        this.#write('delete', resource, ref, () => this.#delete(resource, ref, uid)),
    };
    return {
      client: client as unknown as UninstallDeps['client'],
      clock: {
        now: () => this.#now,
        sleep: (ms) => {
          this.#now += ms;
          this.#endPods();
          this.onSleep();
          return Promise.resolve();
        },
      },
      concurrency: 1,
      server: 'https://lab',
      print: (line) => this.printed.push(line),
      printStatus: (line) => this.logged.push(line),
      ask:
        this.answer === undefined
          ? undefined
          : (question) => {
              this.asked.push(question);
              return Promise.resolve(this.answer ?? '');
            },
    };
  }

  async #list<P>(
    resource: Resource,
    { labelSelector = '', namespace }: ListOptions = {},
    transform: (object: KubeObject) => P,
  ): Promise<{ items: P[] }> {
    await Promise.resolve();
    this.beforeList();
    if (this.unreadable.has(resource.plural)) throw apiError(403, 'Forbidden', 'no', '');
    const isServed = this.#objects.has(qualifiedName(resource));
    if (!isServed) throw apiError(404, 'NotFound', 'the server could not find the resource', '');
    const wanted = labelSelector === '' ? [] : labelSelector.split(',').map((each) => each.split('='));
    const items = [...this.#of(resource).values()]
      .filter(({ metadata }) => wanted.every(([key = '', value]) => metadata.labels?.[key] === value))
      .filter(({ metadata }) => namespace === undefined || metadata.namespace === namespace)
      .map((object) => transform(structuredClone(object)));
    return { items };
  }

  async #write<T>(verb: string, resource: Resource, ref: ObjectRef, act: () => T): Promise<T> {
    await Promise.resolve();
    if (this.writes === this.killAfter) throw new ProcessKilled();
    this.beforeWrite({ verb, resource, name: ref.name });
    const result = act();
    this.writes += 1;
    this.afterWrite();
    return result;
  }

  #patch(resource: Resource, ref: ObjectRef, body: KubeObject): KubeObject {
    const found = this.#find(resource, ref);
    const { uid, resourceVersion, ...changes } = (body.metadata as Partial<ObjectMeta> | undefined) ?? {};
    checkPreconditions(found, { uid, resourceVersion });
    if (resource.plural === IPAM_CLAIMS.plural) this.#guardClaim(found, changes);
    mergePatch(found, { ...body, metadata: changes });
    if (found.metadata.deletionTimestamp !== undefined && !hasFinalizers(found)) this.#remove(resource, found);
    else this.#store(resource, found);
    return structuredClone(found);
  }

  /** As the policy claim-guard does, for a user who is not in system:masters. */
  #guardClaim({ metadata }: KubeObject, { finalizers }: Partial<ObjectMeta>): void {
    const isGuarded =
      this.has('ValidatingAdmissionPolicyBinding', 'holdfast-claim-guard') ||
      (this.#unguardedAt !== undefined && this.#now - this.#unguardedAt < POLICY_LAG_MS);
    if (!isGuarded || finalizers?.includes(CLAIM_FINALIZER)) return;
    throw new StatusError({
      request: 'PATCH claim',
      status: 422,
      reason: 'Invalid',
      message: `ipamclaims.k8s.cni.cncf.io "${metadata.name}" is forbidden: ValidatingAdmissionPolicy 'holdfast-claim-guard' with binding 'holdfast-claim-guard' denied request: only Holdfast sets and removes the finalizer`,
    });
  }

  #delete(resource: Resource, ref: ObjectRef, uid: string | undefined): void {
    const found = this.#of(resource).get(keyOf(ref));
    if (found === undefined) return;
    checkPreconditions(found, { uid });
    if (resource.plural === CRDS.plural) found.metadata.finalizers ??= ['cleanup'];
    if (hasFinalizers(found)) found.metadata.deletionTimestamp ??= '2026-01-01T00:00:00Z';
    else this.#remove(resource, found);
    if (resource.plural === CRDS.plural) this.#cleanUpKind(found);
  }

  /** Deletes the instances of a kind that is being deleted, then the kind. */
  #cleanUpKind(crd: KubeObject): void {
    const instances = this.#objects.get(crd.metadata.name) ?? new Map<string, KubeObject>();
    for (const [key, object] of instances) {
      if (hasFinalizers(object)) object.metadata.deletionTimestamp ??= '2026-01-01T00:00:00Z';
      else instances.delete(key);
    }
    if (instances.size > 0) return;
    this.#objects.delete(crd.metadata.name);
    this.#of(CRDS).delete(crd.metadata.name);
  }

  #remove(resource: Resource, { metadata }: KubeObject): void {
    this.#of(resource).delete(keyOf(metadata));
    if (metadata.name === 'holdfast-claim-guard' && resource.plural.endsWith('bindings')) this.#unguardedAt = this.#now;
    if (resource.plural === NAMESPACES.plural) {
      for (const objects of this.#objects.values()) {
        for (const [key, object] of objects) if (object.metadata.namespace === metadata.name) objects.delete(key);
      }
    }
    for (const crd of this.#of(CRDS).values()) {
      if (crd.metadata.deletionTimestamp !== undefined) this.#cleanUpKind(crd);
    }
  }

  /** Pods end some time after their workload is gone. */
  #endPods(): void {
    for (const [key, { metadata }] of this.#of(PODS)) {
      if (metadata.labels?.['app.kubernetes.io/name'] !== 'holdfast' || !metadata.ownerReferences) continue;
      const kind = metadata.name.startsWith('holdfast-agent') ? DAEMON_SETS.kind : 'Deployment';
      const workload = `${metadata.namespace}/${metadata.name.replace(/-\d+$/, '')}`;
      if (!this.has(kind, workload)) this.#of(PODS).delete(key);
    }
  }

  #find(resource: Resource, ref: ObjectRef): KubeObject {
    const found = this.#of(resource).get(keyOf(ref));
    if (found === undefined) throw apiError(404, 'NotFound', 'NotFound', ref.name);
    return found;
  }

  #store(resource: Resource, object: KubeObject): void {
    object.metadata.resourceVersion = String(++this.#version);
    object.metadata.uid ??= `uid-${this.#version}`;
    this.#of(resource).set(keyOf(object.metadata), object);
  }

  #of(resource: Resource): Map<string, KubeObject> {
    const name = qualifiedName(resource);
    const known = this.#objects.get(name) ?? new Map<string, KubeObject>();
    this.#objects.set(name, known);
    return known;
  }
}

interface AccessReview {
  spec: { resourceAttributes: { verb: string; resource: string; subresource?: string } };
}

/** A claim that Holdfast manages. @param key `namespace/name` */
export function ownClaim(key: string, more: Partial<ObjectMeta> = {}): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  return {
    apiVersion: 'k8s.cni.cncf.io/v1alpha1',
    kind: 'IPAMClaim',
    metadata: { namespace, name, finalizers: [CLAIM_FINALIZER], annotations: { [CLAIM_OWNER_UID]: 'u' }, ...more },
  };
}

function hasFinalizers({ metadata }: KubeObject): boolean {
  return (metadata.finalizers ?? []).length > 0;
}

function keyOf({ namespace, name }: ObjectRef): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
