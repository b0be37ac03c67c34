import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID } from '../../api/names.js';
import { StatusError } from '../../kube/errors.js';
import { IPAM_CLAIMS, NAMESPACES, PODS } from '../../kube/resources.js';
import { type ObjectRef, type Resource, clusterResource } from '../../kube/resource.js';
import { type Preconditions, apiError } from '../../test/api-errors.js';
import { qualifiedName } from '../forbidden.js';
import { CRDS, DAEMON_SETS } from '../installation.js';
import { OWN_KINDS, STAGES } from '../uninstall/stages.js';
import type { UninstallDeps } from '../uninstall/uninstall.js';
import { MemoryCluster, hasFinalizers, keyOf } from './memory-cluster.js';

/** For API servers to notice that a policy is gone: longer than the command waits without an error. */
const POLICY_LAG_MS = 8_000;
const KNOWN_KINDS: readonly Resource[] = [...STAGES.flatMap(({ kinds }) => kinds), ...OWN_KINDS, IPAM_CLAIMS, PODS];

/** The API server of a cluster with Holdfast, as far as `kubectl holdfast uninstall` uses it. */
export class InstalledCluster extends MemoryCluster {
  readonly asked: string[] = [];
  /** What the user types; undefined: there is no terminal. */
  answer: string | undefined;
  /** `verb resource` that the user may not do. */
  readonly forbidden = new Set<string>();
  /** Called whenever the command waits. */
  onSleep: () => void = () => undefined;
  #now = 1_000;
  #unguardedAt: number | undefined;

  /** @param objects with apiVersion and kind */
  constructor(objects: readonly KubeObject[]) {
    super();
    for (const object of objects) this.add(object);
  }

  /** @param object with apiVersion and kind */
  add(object: KubeObject): void {
    const { apiVersion = '', kind = '' } = object;
    const plural = kind === 'NetworkAttachmentDefinition' ? 'network-attachment-definitions' : `${kind.toLowerCase()}s`;
    this.put(KNOWN_KINDS.find((each) => each.kind === kind) ?? clusterResource(apiVersion, plural, kind), object);
  }

  /** `Kind namespace/name` of all objects, sorted. */
  names(kind?: string): string[] {
    return [...this.kinds.values()]
      .flatMap((each) => [...each.values()])
      .filter((object) => kind === undefined || object.kind === kind)
      .map(({ kind: own = '', metadata }) => `${own} ${keyOf(metadata)}`)
      .sort();
  }

  has(kind: string, key: string): boolean {
    return [...this.kinds.values()].some((each) => each.get(key)?.kind === kind);
  }

  deps(): UninstallDeps {
    const ask = (question: string) => {
      this.asked.push(question);
      return Promise.resolve(this.answer ?? '');
    };
    return {
      ...this.output,
      client: this.client,
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
      ask: this.answer === undefined ? undefined : ask,
    };
  }

  protected override checkRead(resource: Resource, verb: string, namespace: string | undefined): void {
    super.checkRead(resource, verb, namespace);
    const isServed = this.kinds.has(qualifiedName(resource));
    if (!isServed) throw apiError(404, 'NotFound', 'the server could not find the resource', '');
  }

  /** Reviews of rights are all that the command creates. */
  protected override create(_resource: Resource, review: KubeObject): Promise<KubeObject> {
    const { verb, resource, subresource } = (review as AccessReview).spec.resourceAttributes;
    const name = subresource === undefined ? resource : `${resource}/${subresource}`;
    return Promise.resolve({ ...review, status: { allowed: !this.forbidden.has(`${verb} ${name}`) } } as KubeObject);
  }

  protected override patch(resource: Resource, ref: ObjectRef, body: KubeObject): KubeObject {
    if (resource.plural === IPAM_CLAIMS.plural) this.#guardClaim(this.get(resource, ref), body);
    return super.patch(resource, ref, body);
  }

  /** As the policy claim-guard does, for a user who is not in system:masters. */
  #guardClaim({ metadata: { name } }: KubeObject, { metadata: { finalizers } }: KubeObject): void {
    const isGuarded =
      this.has('ValidatingAdmissionPolicyBinding', 'holdfast-claim-guard') ||
      (this.#unguardedAt !== undefined && this.#now - this.#unguardedAt < POLICY_LAG_MS);
    // a patch removes the last finalizer with null
    if (!isGuarded || (finalizers as string[] | null | undefined)?.includes(CLAIM_FINALIZER)) return;
    throw new StatusError({
      request: 'PATCH claim',
      status: 422,
      reason: 'Invalid',
      message: `ipamclaims.k8s.cni.cncf.io "${name}" is forbidden: ValidatingAdmissionPolicy 'holdfast-claim-guard' with binding 'holdfast-claim-guard' denied request: only Holdfast sets and removes the finalizer`,
    });
  }

  protected override delete(resource: Resource, ref: ObjectRef, preconditions: Preconditions): void {
    const crd = resource.plural === CRDS.plural ? this.of(CRDS).get(ref.name) : undefined;
    if (crd !== undefined) crd.metadata.finalizers ??= ['cleanup'];
    super.delete(resource, ref, { uid: preconditions.uid });
    if (crd !== undefined) this.#cleanUpKind(crd);
  }

  /** Deletes the instances of a kind that is being deleted, then the kind. */
  #cleanUpKind(crd: KubeObject): void {
    const instances = this.kinds.get(crd.metadata.name) ?? new Map<string, KubeObject>();
    for (const [key, object] of instances) {
      if (hasFinalizers(object)) object.metadata.deletionTimestamp ??= '2026-01-01T00:00:00Z';
      else instances.delete(key);
    }
    if (instances.size > 0) return;
    this.kinds.delete(crd.metadata.name);
    this.of(CRDS).delete(crd.metadata.name);
  }

  protected override removed(resource: Resource, object: KubeObject): void {
    super.removed(resource, object);
    const { name } = object.metadata;
    if (name === 'holdfast-claim-guard' && resource.plural.endsWith('bindings')) this.#unguardedAt = this.#now;
    if (resource.plural === NAMESPACES.plural) {
      for (const objects of this.kinds.values()) {
        for (const [key, { metadata }] of objects) if (metadata.namespace === name) objects.delete(key);
      }
    }
    for (const crd of this.all(CRDS)) if (crd.metadata.deletionTimestamp !== undefined) this.#cleanUpKind(crd);
  }

  /** Pods end some time after their workload is gone. */
  #endPods(): void {
    for (const { metadata } of this.all(PODS)) {
      if (metadata.labels?.['app.kubernetes.io/name'] !== 'holdfast' || !metadata.ownerReferences) continue;
      const kind = metadata.name.startsWith('holdfast-agent') ? DAEMON_SETS.kind : 'Deployment';
      const workload = `${metadata.namespace}/${metadata.name.replace(/-\d+$/, '')}`;
      if (!this.has(kind, workload)) this.remove(PODS, keyOf(metadata));
    }
  }
}

type AccessReview = KubeObject & {
  spec: { resourceAttributes: { verb: string; resource: string; subresource?: string } };
};

/** A claim that Holdfast manages. @param key `namespace/name` */
export function ownClaim(key: string, more: Partial<ObjectMeta> = {}): KubeObject {
  const [namespace = '', name = ''] = key.split('/');
  return {
    apiVersion: 'k8s.cni.cncf.io/v1alpha1',
    kind: 'IPAMClaim',
    metadata: { namespace, name, finalizers: [CLAIM_FINALIZER], annotations: { [CLAIM_OWNER_UID]: 'u' }, ...more },
  };
}
