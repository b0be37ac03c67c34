import type { AddressLease } from '../../../../api/address-lease.js';
import type { IPAMClaim } from '../../../../api/ipam-claim.js';
import { type KubeObject, joinKey } from '../../../../api/meta.js';
import type { ApiRequest, ClientTransport } from '../../../../kube/transport.js';
import type { Kind, IpamWorld } from './world.js';
import { type Preconditions, apiError, checkPreconditions } from '../../../../test/api-errors.js';
import { mergePatch } from '../../../../test/merge-patch.js';

/** A failure of a request: it has no effect, or it is applied and the answer is lost. */
export type Fault = { error: Error; applied: boolean } | undefined;

/** Checks each write before it is stored. */
export interface WriteChecks {
  checkLeaseChange(before: AddressLease | undefined, after: AddressLease | undefined): void;
  checkStatusChange(before: IPAMClaim, after: IPAMClaim): void;
}

interface RequestTarget {
  kind: Kind;
  namespace?: string;
  name?: string;
  subresource?: string;
}

/** The API server of a model world, as far as claims need it: reads, and writes with their preconditions. */
export class SimulatedApi implements ClientTransport {
  readonly requests: string[] = [];
  before: (request: ApiRequest) => Fault | Promise<Fault> = () => undefined;
  readonly #world: IpamWorld;
  readonly #checks: WriteChecks;

  constructor(world: IpamWorld, checks: WriteChecks) {
    this.#world = world;
    this.#checks = checks;
  }

  async request(request: ApiRequest): Promise<unknown> {
    const target = targetOf(request.path);
    await Promise.resolve();
    const fault = await this.before(request);
    if (fault !== undefined && !fault.applied) throw fault.error;
    this.requests.push([request.method, target.kind, target.name, target.subresource].filter(Boolean).join(' '));
    const answer = structuredClone(this.#answer(request, target));
    if (fault !== undefined) throw fault.error;
    return answer;
  }

  stream(): never {
    throw new TypeError('nothing is watched through this API');
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  #answer(request: ApiRequest, { kind, namespace, name, subresource }: RequestTarget): unknown {
    if (name === undefined) {
      if (request.method === 'GET') return { metadata: {}, items: this.#world.list(kind) };
      return this.#create(request.body as AddressLease);
    }
    const key = joinKey(namespace, name);
    const found = this.#world.get(kind, key);
    if (found === undefined) throw apiError(404, 'NotFound', `${kind} ${key}`, name);
    switch (request.method) {
      case 'GET':
        return found;
      case 'PATCH':
        return this.#patch(kind, found, { body: request.body as KubeObject, subresource });
      case 'DELETE':
        checkPreconditions(found, (request.body as { preconditions?: Preconditions }).preconditions);
        this.#checks.checkLeaseChange(found as AddressLease, undefined);
        this.#world.remove(kind, key);
        return undefined;
      default:
        throw new TypeError(`${request.method} is not simulated`);
    }
  }

  #create(lease: AddressLease): unknown {
    if (this.#world.get('addressleases', lease.metadata.name) !== undefined) {
      throw apiError(409, 'AlreadyExists', lease.metadata.name, lease.metadata.name);
    }
    this.#checks.checkLeaseChange(undefined, lease);
    return this.#world.create('addressleases', lease);
  }

  #patch(
    kind: Kind,
    found: KubeObject,
    { body, subresource }: { body: KubeObject; subresource: string | undefined },
  ): unknown {
    checkPreconditions(found, body.metadata);
    const after = structuredClone(found);
    mergePatch(after, body);
    if (kind === 'ipamclaims') {
      if (subresource !== 'status') throw apiError(403, 'Forbidden', 'only status is ours', found.metadata.name);
      this.#checks.checkStatusChange(found as IPAMClaim, after as IPAMClaim);
    } else this.#checks.checkLeaseChange(found as AddressLease, after as AddressLease);
    return this.#world.update(kind, joinKey(found.metadata.namespace, found.metadata.name), (copy) =>
      Object.assign(copy, after),
    );
  }
}

function targetOf(path: string): RequestTarget {
  const match =
    /\/(?:namespaces\/([^/]+)\/)?(ipamclaims|addressleases|addresspools|pods)(?:\/([^/]+))?(?:\/([^/]+))?$/.exec(path);
  if (match?.[2] === undefined) throw new TypeError(`${path} is not simulated`);
  const [, namespace, kind, name, subresource] = match;
  return {
    kind: kind as Kind,
    ...(namespace !== undefined && { namespace }),
    ...(name !== undefined && { name }),
    ...(subresource !== undefined && { subresource }),
  };
}
