import type { KubeObject, ObjectMeta } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID } from '../../api/names.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { type ObjectRef, type Resource, clusterResource } from '../../kube/resource.js';
import { type Preconditions, apiError } from '../../test/api-errors.js';
import { qualifiedName } from '../forbidden.js';
import { CRDS } from '../installation.js';
import { INSTALLED_KINDS, OWN_KINDS } from '../uninstall/kinds.js';
import type { UninstallDeps } from '../uninstall/uninstall.js';
import { MemoryCluster, hasFinalizers, keyOf } from './memory-cluster.js';

const KNOWN_KINDS: readonly Resource[] = [...INSTALLED_KINDS, ...OWN_KINDS, IPAM_CLAIMS];

/** The API server of a cluster with Holdfast, as far as `kubectl holdfast uninstall` uses it. */
export class InstalledCluster extends MemoryCluster {
  readonly asked: string[] = [];
  /** What the user types; undefined: there is no terminal. */
  answer: string | undefined;
  /** `verb resource` that the user may not do. */
  readonly forbidden = new Set<string>();
  #now = 1_000;

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
    for (const crd of this.all(CRDS)) if (crd.metadata.deletionTimestamp !== undefined) this.#cleanUpKind(crd);
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
