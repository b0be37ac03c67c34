import type { ClaimOwner } from '../../api/ipam-claim.js';
import { EventReason } from '../../api/event-reasons.js';
import { requestedNetworks } from '../../api/requested-addresses.js';
import { requestingSpecOf } from './address-requests.js';
import type { InterfaceProblem } from './desired-claim.js';
import type { ObservedWorkload } from './observed-workload.js';
import type { OwnerSpec } from './owner-spec.js';

/** Returns why the pod network of an owner gets no persistent addresses although its namespace, its NAD or a request says so. */
export function podNetworkProblems(owner: ClaimOwner, observed: ObservedWorkload): InterfaceProblem[] {
  const spec = requestingSpecOf(owner, observed);
  if (!observed.canCreateClaims || spec === undefined) return [];
  return [findReplacementProblem(spec, observed), findPrimaryProblem(spec, observed)].filter(
    (problem) => problem !== undefined,
  );
}

/** Silent if nobody expects persistent addresses of the network. */
function findReplacementProblem(
  { replacement, annotations }: OwnerSpec,
  { networks }: ObservedWorkload,
): InterfaceProblem | undefined {
  if (replacement === undefined) return undefined;
  const { name, nadKey } = replacement;
  const lookup = networks.get(nadKey);
  const isPersistent = lookup?.found === true && lookup.config.ok && lookup.config.network.allowPersistentIPs;
  if (!isPersistent && !requestedNetworks(annotations).includes(name)) return undefined;
  const message =
    `Network "${name}" replaces the pod network (multus.default), which gets no persistent addresses. Make ` +
    `NetworkAttachmentDefinition ${nadKey} a secondary network of the VM. With OVN-Kubernetes, you can also use a primary ` +
    'user-defined network with the feature gate PrimaryUserDefinedNetwork';
  return { reason: EventReason.NetworkNotServed, message };
}

function findPrimaryProblem(
  { podNetwork }: OwnerSpec,
  { namespace, needsPrimaryNetwork, primaryNetwork }: ObservedWorkload,
): InterfaceProblem | undefined {
  if (podNetwork === undefined || !needsPrimaryNetwork) return undefined;
  if (primaryNetwork === undefined) {
    const message =
      `Network "${podNetwork}": namespace ${namespace} is labelled for a primary user-defined network, but has no valid ` +
      'NetworkAttachmentDefinition with "role": "primary": create a UserDefinedNetwork with role Primary';
    return { reason: EventReason.NetworkNotFound, message };
  }
  if (primaryNetwork.others === 0) return undefined;
  const message =
    `Network "${podNetwork}": namespace ${namespace} has ${primaryNetwork.others + 1} NetworkAttachmentDefinitions with ` +
    `"role": "primary", and ${primaryNetwork.nadKey} is used, the first by name: delete the others`;
  return { reason: EventReason.NetworkInvalid, message };
}
