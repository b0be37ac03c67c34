import { type KubeObject, type ObjectMeta, objectKey } from '../../api/meta.js';
import { CLAIM_FINALIZER, CLAIM_OWNER_UID } from '../../api/names.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import { type Resource, clusterResource } from '../../kube/resource.js';
import { targetOf } from '../../kube/testing/memory-transport.js';
import type { TrackedEvent } from '../../kube/testing/object-tracker.js';
import { NOT_FOUND, refusal } from '../../kube/testing/refusals.js';
import type { ApiRequest } from '../../kube/transport/transport.js';
import { qualifiedName } from '../forbidden.js';
import { CRDS } from '../installation.js';
import { INSTALLED_KINDS, OWN_KINDS } from '../uninstall/plan.js';
import type { UninstallDeps } from '../uninstall/uninstall.js';
import { MemoryCluster } from './memory-cluster.js';

const KNOWN_KINDS: readonly Resource[] = [...INSTALLED_KINDS, ...OWN_KINDS, IPAM_CLAIMS];
/** Of CustomResourceDefinitions, until their instances are gone. */
const CLEANUP_FINALIZER = 'customresourcecleanup.apiextensions.k8s.io';

/** The API server of a cluster with Holdfast, as far as `kubectl holdfast uninstall` uses it. */
export class InstalledCluster extends MemoryCluster {
  readonly asked: string[] = [];
  /** What the user types; undefined: there is no terminal. */
  answer: string | undefined;
  /** `verb resource` that the user may not do. */
  readonly forbidden = new Set<string>();
  /** The kinds that are served, by their qualified name. */
  readonly #kinds = new Map<string, Resource>();
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
    const resource = KNOWN_KINDS.find((each) => each.kind === kind) ?? clusterResource(apiVersion, plural, kind);
    if (!this.#kinds.has(qualifiedName(resource))) this.#serve(resource);
    const isKind = resource.plural === CRDS.plural;
    const metadata = { ...object.metadata, finalizers: [CLEANUP_FINALIZER] };
    this.put(resource, isKind ? { ...object, metadata } : object);
  }

  /** `Kind namespace/name` of all objects, sorted. */
  names(kind?: string): string[] {
    return [...this.#kinds.values()]
      .flatMap((each) => this.all(each))
      .filter((object) => kind === undefined || object.kind === kind)
      .map((object) => `${object.kind} ${objectKey(object)}`)
      .sort();
  }

  has(kind: string, key: string): boolean {
    return this.names(kind).includes(`${kind} ${key}`);
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
      clusterFlags: ' --context lab',
      helmClusterFlags: ' --kube-context lab',
      ask: this.answer === undefined ? undefined : ask,
    };
  }

  /** Reviews of rights are all that the command creates. */
  override serve(request: ApiRequest): unknown {
    const { kind } = targetOf(request.path);
    if (request.method === 'POST') return this.#review(request.body as AccessReview);
    if (!this.#kinds.has(qualifiedName(kind))) throw refusal(kind, '', NOT_FOUND, 'is not served');
    return super.serve(request);
  }

  #serve(resource: Resource): void {
    this.#kinds.set(qualifiedName(resource), resource);
    this.tracker.observe(resource, ({ type, object }: TrackedEvent) => {
      if (type === 'DELETED') this.#removed(resource);
      else if (resource.plural === CRDS.plural && object.metadata.deletionTimestamp !== undefined)
        this.#cleanUpKind(object);
    });
  }

  #review(review: AccessReview): AccessReview & { status: object } {
    const { verb, resource, subresource } = review.spec.resourceAttributes;
    const name = subresource === undefined ? resource : `${resource}/${subresource}`;
    return { ...review, status: { allowed: !this.forbidden.has(`${verb} ${name}`) } };
  }

  /** Deletes the instances of a kind that is being deleted, then the kind. */
  #cleanUpKind({ metadata: { name } }: KubeObject): void {
    const kind = this.#kinds.get(name);
    const instances = kind === undefined ? [] : this.all(kind);
    for (const { metadata } of instances) {
      if (metadata.deletionTimestamp === undefined) this.tracker.delete(kind!, metadata);
    }
    if (kind !== undefined && this.all(kind).length > 0) return;
    this.#kinds.delete(name);
    this.tracker.remove(CRDS, { name });
  }

  #removed(resource: Resource): void {
    const crd = this.tracker.find(CRDS, { name: qualifiedName(resource) });
    if (crd?.metadata.deletionTimestamp !== undefined) this.#cleanUpKind(crd);
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
