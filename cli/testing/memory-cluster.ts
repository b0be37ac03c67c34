import type { KubeObject } from '../../api/meta.js';
import { Client } from '../../kube/client.js';
import { StatusError } from '../../kube/errors.js';
import type { Resource } from '../../kube/resource.js';
import { MemoryTransport, type RequestTarget, targetOf } from '../../kube/testing/memory-transport.js';
import type { ApiRequest } from '../../kube/transport/transport.js';
import { refOf } from '../../test/object-tracker/object-world.js';

export interface ClusterWrite {
  readonly verb: 'create' | 'patch' | 'delete';
  readonly resource: RequestTarget['kind'];
  readonly name: string;
}

const VERBS: Readonly<Record<string, ClusterWrite['verb']>> = { POST: 'create', PATCH: 'patch', DELETE: 'delete' };

/** The process is gone, wherever it was. */
export class ProcessKilled extends Error {}

/** The API server of a user who runs commands, and what they print. */
export class MemoryCluster extends MemoryTransport {
  /** Plurals that the user may not read in all namespaces, or at all if they are cluster-scoped. */
  readonly refused = new Set<string>();
  /** `plural/name` or `plural?selector` of all reads. */
  readonly reads: string[] = [];
  /** What a command printed, as its result and as its progress. */
  readonly printed: string[] = [];
  readonly logged: string[] = [];
  /** Called before each list; may throw. */
  beforeList: () => void = () => undefined;
  /** Called after each list of this kind: what happens meanwhile. */
  afterList: (kind: RequestTarget['kind']) => void = () => undefined;
  /** Called before each write; may throw. */
  beforeWrite: (write: ClusterWrite) => void = () => undefined;
  /** Called after each write. */
  afterWrite: () => void = () => undefined;
  /** What a SelfSubjectReview says. It has no name and is not stored. */
  time = '2026-01-01T00:00:00Z';
  writes = 0;
  /** The process ends with this write. */
  killAfter: number | undefined;
  readonly client = new Client(this);

  put<T extends KubeObject>(resource: Resource<T>, ...objects: readonly T[]): this {
    this.tracker.put(resource, ...objects);
    return this;
  }

  /** Replaces the object of that name. */
  change<T extends KubeObject>(resource: Resource<T>, name: string, change: (object: T) => T): void {
    const found = this.find(resource, name);
    if (found === undefined) return;
    const changed = change(structuredClone(found));
    if (changed.metadata.name !== name) this.tracker.remove(resource, found.metadata);
    this.tracker.put(resource, changed);
  }

  /** @param key `namespace/name` */
  remove(resource: Resource, key: string): void {
    this.tracker.remove(resource, refOf(key));
  }

  all<T extends KubeObject>(resource: Resource<T>): T[] {
    return this.tracker.list(resource);
  }

  find<T extends KubeObject>(resource: Resource<T>, name: string): T | undefined {
    return this.all(resource).find(({ metadata }) => metadata.name === name);
  }

  override serve(request: ApiRequest): unknown {
    const { method, path, query = {}, body } = request;
    const target = targetOf(path);
    if (target.kind.plural === 'selfsubjectreviews') return { metadata: { creationTimestamp: this.time } };
    const verb = VERBS[method];
    if (verb === undefined) return this.#read(request, target);
    if (query.dryRun !== undefined) return super.serve(request);
    if (this.writes === this.killAfter) throw new ProcessKilled();
    this.beforeWrite({ verb, resource: target.kind, name: target.name ?? (body as KubeObject).metadata.name });
    const answer = super.serve(request);
    this.writes += 1;
    this.afterWrite();
    return answer;
  }

  /** What commands print. */
  protected get output() {
    return {
      print: (line: string) => void this.printed.push(line),
      printStatus: (line: string) => void this.logged.push(line),
    };
  }

  #read(request: ApiRequest, { kind, namespace, name }: RequestTarget): unknown {
    const { labelSelector = '', fieldSelector = '', continue: token } = request.query ?? {};
    // the next page of a list
    if (token !== undefined) return super.serve(request);
    this.reads.push(name === undefined ? `${kind.plural}?${labelSelector}${fieldSelector}` : `${kind.plural}/${name}`);
    if (name === undefined) this.beforeList();
    this.#checkRights(kind, name === undefined ? 'list' : 'get', namespace);
    const answer = super.serve(request);
    if (name === undefined) this.afterList(kind);
    return answer;
  }

  #checkRights({ plural, group }: RequestTarget['kind'], verb: string, namespace: string | undefined): void {
    if (namespace !== undefined || !this.refused.has(plural)) return;
    const message = `User "eve" cannot ${verb} resource "${plural}" in API group "${group}" at the cluster scope`;
    throw new StatusError({ request: verb, status: 403, reason: 'Forbidden', message });
  }
}
