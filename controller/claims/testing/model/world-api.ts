import { applyPatch } from 'fast-json-patch';
import { type KubeObject, joinKey } from '../../../../api/meta.js';
import { isTerminal } from '../../../../api/pod.js';
import type { ApiRequest, ClientTransport } from '../../../../kube/transport.js';
import { type Preconditions, apiError, checkPreconditions } from '../../../../test/api-errors.js';
import { mergePatch } from '../../../../test/merge-patch.js';
import type { Kind, ClaimsWorld } from './world.js';

const KIND_OF: Record<string, Kind> = {
  virtualmachines: 'vms',
  virtualmachineinstances: 'vmis',
  pods: 'launchers',
  ipamclaims: 'claims',
};

interface RequestTarget {
  kind: Kind;
  namespace: string;
  name: string | undefined;
}

/** The API server of a model world, as far as the controller needs it: reads, and writes with their preconditions. */
export class WorldApi implements ClientTransport {
  readonly seen: string[] = [];
  /** Called before each request. It may throw errors of a transport. */
  before: (request: ApiRequest) => void | Promise<void> = () => undefined;
  readonly #world: ClaimsWorld;

  constructor(world: ClaimsWorld) {
    this.#world = world;
  }

  async request(request: ApiRequest): Promise<unknown> {
    const target = targetOf(request.path);
    this.seen.push([request.method, target.kind, target.name].filter(Boolean).join(' '));
    await this.before(request);
    return structuredClone(this.#answer(request, target));
  }

  stream(): never {
    throw new TypeError('nothing is watched through this API');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #answer(request: ApiRequest, target: RequestTarget): unknown {
    const { kind, namespace, name } = target;
    if (name === undefined) {
      if (request.method === 'POST') return this.#world.create(kind, request.body as KubeObject);
      return { metadata: { resourceVersion: String(this.#world.version) }, items: this.#select(request, target) };
    }
    const key = joinKey(namespace, name);
    const found = this.#world.get(kind, key);
    if (found === undefined) throw apiError(404, 'NotFound', `${kind} "${name}" not found`, name);
    switch (request.method) {
      case 'GET':
        return found;
      case 'PATCH':
        return this.#world.update(kind, key, patchOf(request, found));
      case 'DELETE':
        checkPreconditions(found, (request.body as { preconditions?: Preconditions }).preconditions);
        this.#world.delete(kind, key);
        return undefined;
      default:
        throw new TypeError(`${request.method} is not simulated`);
    }
  }

  #select({ query }: ApiRequest, { kind, namespace }: RequestTarget): KubeObject[] {
    const running = String(query?.fieldSelector ?? '').includes('status.phase!=');
    const ended = new Set<KubeObject>(this.#world.list('launchers').filter(isTerminal));
    const objects: KubeObject[] = this.#world.list(kind);
    return objects
      .filter((object) => object.metadata.namespace === namespace && !(running && ended.has(object)))
      .map(({ metadata }) => ({ metadata }));
  }
}

/** `/apis/<group>/<version>/namespaces/<namespace>/<plural>[/<name>]` */
function targetOf(path: string): RequestTarget {
  const match = /\/namespaces\/([^/]+)\/([^/]+)(?:\/([^/]+))?$/.exec(path);
  const kind = KIND_OF[match?.[2] ?? ''];
  if (match?.[1] === undefined || kind === undefined) throw new TypeError(`${path} is not simulated`);
  return { kind, namespace: match[1], name: match[3] };
}

function patchOf({ contentType, body }: ApiRequest, found: KubeObject): (copy: KubeObject) => void {
  if (contentType === 'application/json-patch+json') {
    return (copy) => {
      try {
        applyPatch(copy, body as Parameters<typeof applyPatch>[1], true);
      } catch (error) {
        throw apiError(422, 'Invalid', String(error), found.metadata.name);
      }
    };
  }
  const { metadata = {} } = body as { metadata?: Preconditions };
  checkPreconditions(found, metadata);
  return (copy) => mergePatch(copy, body as object);
}
