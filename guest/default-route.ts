import { describeValue } from '../api/json.js';
import { DEFAULT_ROUTE_ANNOTATION, NO_DEFAULT_ROUTE } from '../api/names.js';
import type { Family } from '../addressing/address/address.js';

/** An interface that may have the guest's default route. */
export interface RouteCandidate {
  /** The name of its network in the VM's spec. */
  readonly vmNetwork: string;
  readonly isPodNetwork: boolean;
  /** Holdfast serves its addresses. Other interfaces get their routes from somebody else. */
  readonly isServed: boolean;
  /** The families whose subnet has a gateway. */
  readonly gateways: readonly Family[];
}

export type DefaultRoute =
  | {
      readonly kind: 'interface';
      readonly vmNetwork: string;
      readonly by: 'annotation' | 'pod-network' | 'first-gateway';
    }
  | { readonly kind: 'none' }
  /** `message` says what to correct in the annotation. */
  | { readonly kind: 'invalid'; readonly message: string };

/** Networks that a message lists. */
const MAX_LISTED = 8;

/**
 * Chooses the one interface that has the guest's default route, of both families. A guest with two of them sends answers through the
 * wrong one.
 * @param candidates in the order of the VM's networks
 * @param requested the annotation of the VM's template
 */
export function chooseDefaultRoute(candidates: readonly RouteCandidate[], requested: string | undefined): DefaultRoute {
  if (requested === NO_DEFAULT_ROUTE && !candidates.some(({ vmNetwork }) => vmNetwork === NO_DEFAULT_ROUTE))
    return { kind: 'none' };
  if (requested !== undefined) return requestedRoute(candidates, requested);
  const pod = candidates.find(({ isPodNetwork }) => isPodNetwork);
  if (pod !== undefined) return { kind: 'interface', vmNetwork: pod.vmNetwork, by: 'pod-network' };
  const first = candidates.find(({ gateways }) => gateways.length > 0);
  return first === undefined
    ? { kind: 'none' }
    : { kind: 'interface', vmNetwork: first.vmNetwork, by: 'first-gateway' };
}

function requestedRoute(candidates: readonly RouteCandidate[], requested: string): DefaultRoute {
  const found = candidates.find(({ vmNetwork }) => vmNetwork === requested);
  const subject = `Annotation ${DEFAULT_ROUTE_ANNOTATION}: ${describeValue(requested)}`;
  if (found === undefined) {
    const names = candidates.slice(0, MAX_LISTED).map(({ vmNetwork }) => describeValue(vmNetwork));
    return {
      kind: 'invalid',
      message: `${subject} is not a network of the VM: write one of ${[...names, `"${NO_DEFAULT_ROUTE}"`].join(', ')}`,
    };
  }
  if (found.isServed && found.gateways.length === 0) {
    return {
      kind: 'invalid',
      message: `${subject} has no gateway: name another network, or ask the administrator to set subnets[].gateway in its AddressPool`,
    };
  }
  return { kind: 'interface', vmNetwork: found.vmNetwork, by: 'annotation' };
}
