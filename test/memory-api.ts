import jsonpatch, { type Operation } from 'fast-json-patch';
import type { KubeObject } from '../api/meta.js';
import { StatusError } from '../kube/errors.js';
import type { ApiRequest, ClientTransport } from '../kube/transport.js';

/**
 * A few objects behind the API server's rules for create, read, replace, patch and delete: names are taken once, a PUT needs
 * the current resourceVersion. For tests that run on a fake clock, where no socket can be used.
 */
export class MemoryApi implements ClientTransport {
  /** By path. */
  readonly objects = new Map<string, KubeObject>();
  readonly requests: ApiRequest[] = [];
  /** Awaited before each request is served. It may throw errors of a transport. */
  before: (request: ApiRequest) => Promise<void> | void = () => undefined;
  #version = 0;

  async request(request: ApiRequest): Promise<unknown> {
    this.requests.push(request);
    await this.before(request);
    const { method, path } = request;
    switch (method) {
      case 'GET':
        return structuredClone(this.#find(request));
      case 'POST':
        return this.#create(request);
      case 'PUT':
        return this.#replace(request);
      case 'PATCH':
        return this.#patch(request);
      case 'DELETE':
        this.#find(request);
        this.objects.delete(path);
        return undefined;
      default:
        throw new TypeError(`the memory API does not know ${method}`);
    }
  }

  stream(): never {
    throw new TypeError('the memory API has no watches');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #create(request: ApiRequest): KubeObject {
    const object = request.body as KubeObject;
    const path = `${request.path}/${object.metadata.name}`;
    if (this.objects.has(path)) throw statusError(request, 409, 'AlreadyExists');
    return this.#store(path, object);
  }

  #replace(request: ApiRequest): KubeObject {
    const object = request.body as KubeObject;
    const current = this.#find(request);
    if (object.metadata.resourceVersion !== current.metadata.resourceVersion)
      throw statusError(request, 409, 'Conflict');
    return this.#store(request.path, object);
  }

  /** A JSON patch that sets the resourceVersion has it as a precondition. Any other patch is merged, one level deep. */
  #patch(request: ApiRequest): KubeObject {
    const current = this.#find(request);
    if (request.contentType !== 'application/json-patch+json') {
      return this.#store(request.path, { ...current, ...(request.body as object) });
    }
    const patched = jsonpatch.applyPatch(structuredClone(current), request.body as Operation[], true).newDocument;
    if (patched.metadata.resourceVersion !== current.metadata.resourceVersion)
      throw statusError(request, 409, 'Conflict');
    return this.#store(request.path, patched);
  }

  #find(request: ApiRequest): KubeObject {
    const object = this.objects.get(request.path);
    if (object === undefined) throw statusError(request, 404, 'NotFound');
    return object;
  }

  #store(path: string, object: KubeObject): KubeObject {
    const stored = structuredClone(object);
    stored.metadata.resourceVersion = String(++this.#version);
    this.objects.set(path, stored);
    return structuredClone(stored);
  }
}

function statusError(request: ApiRequest, status: number, reason: string): StatusError {
  return new StatusError({ request: `${request.method} ${request.path}`, status, reason, message: reason });
}
