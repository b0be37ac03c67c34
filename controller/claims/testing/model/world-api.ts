import { MemoryTransport, targetOf } from '../../../../kube/testing/memory-transport.js';
import type { ApiRequest } from '../../../../kube/transport/transport.js';
import { KINDS, type ClaimsWorld, RESOURCES } from './world.js';

/** The API server of a model world, as the controller uses it. */
export class WorldApi extends MemoryTransport {
  /** `<method> <kind> <name>` of each request. */
  readonly seen: string[] = [];

  constructor({ tracker }: ClaimsWorld) {
    super(tracker);
  }

  override request(request: ApiRequest): Promise<unknown> {
    const { kind, name } = targetOf(request.path);
    const short = KINDS.find((each) => RESOURCES[each].plural === kind.plural);
    this.seen.push([request.method, short, name].filter(Boolean).join(' '));
    return super.request(request);
  }
}
