import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { deliveryOf } from '../../api/nad-guests.js';
import { labelValue } from '../../api/ipam-claim.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { IPS_ALLOCATED, LEASE_POOL, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { parseNetworkConfig } from '../../api/network-attachment.js';
import { attachmentProblem } from '../../api/responders.js';
import type { InstalledWorkload } from '../installation.js';
import { describePod, isReady } from './check-processes.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

const GUIDE = 'docs/how-to/layer-2-networks.md#answer-dhcp';

/** Pools with `spec.guest.dhcp` whose guests get no answer, or only that of one responder. */
export function checkResponders(observed: ObservedCluster): Finding[] {
  const { pools = [], responderSets } = observed;
  if (responderSets === undefined) return [];
  const served = pools.filter((pool) => nadNamespaceOf(pool) === undefined && pool.spec.guest?.dhcp !== undefined);
  const setOf = ({ metadata: { name } }: AddressPool) =>
    responderSets.find(({ metadata }) => metadata.labels?.[LEASE_POOL] === labelValue(name));
  return served
    .filter((pool) => !isBeingDeleted(pool))
    .flatMap((pool) => {
      const set = setOf(pool);
      const attachment = checkAttachment(pool, observed);
      if (set !== undefined) return [...attachment, ...checkSet(set, pool, observed)];
      if (attachment.length > 0) return attachment;
      const other = served.find((each) => each.spec.network === pool.spec.network && setOf(each) !== undefined);
      return [missingSet(pool, other)];
    });
}

function checkAttachment({ metadata, spec }: AddressPool, { nads }: ObservedCluster): Finding[] {
  if (nads === undefined) return [];
  const key = `${RESPONDERS_NAMESPACE}/${spec.guest?.attachment ?? ''}`;
  const nad = nads.find((each) => objectKey(each) === key);
  const parsed = nad && { config: parseNetworkConfig(nad), delivery: deliveryOf(nad) };
  const problem = attachmentProblem(parsed, spec.network);
  if (problem === undefined) return [];
  const object = `AddressPool ${metadata.name}`;
  const text = `NetworkAttachmentDefinition ${key}, which spec.guest.attachment names, ${problem}`;
  return [errorOf('responders', object, text, `create or correct the NAD: ${GUIDE}`)];
}

function missingSet({ metadata, spec }: AddressPool, other: AddressPool | undefined): Finding {
  const object = `AddressPool ${metadata.name}`;
  if (other === undefined) {
    const remedy = `look at the events of the pool, and check that holdfast-guest is ready`;
    return errorOf('responders', object, `no StatefulSet in ${RESPONDERS_NAMESPACE} answers DHCP for it`, remedy);
  }
  const problem = `its guests get no answer: the responders of network ${spec.network} are those of AddressPool ${other.metadata.name}`;
  return errorOf('responders', object, problem, 'serve the guests of both from one pool');
}

function checkSet(set: InstalledWorkload, pool: AddressPool, observed: ObservedCluster): Finding[] {
  const { namespace = '', name } = set.metadata;
  const { readyReplicas: ready = 0 } = set.status ?? {};
  const replicas = set.spec?.replicas ?? 0;
  const names = Array.from({ length: replicas }, (_, ordinal) => `${name}-${ordinal}`);
  const claims = names.flatMap((each) => checkClaim(each, pool, observed));
  if (ready >= replicas) return claims;
  const unready = observed.pods?.filter((pod) => names.includes(pod.metadata.name) && !isReady(pod)) ?? [];
  const pods = unready.length === 0 ? '' : `: ${unready.map(describePod).join('; ')}`;
  const problem = `${ready} of ${replicas} responders of AddressPool ${pool.metadata.name} are ready${pods}`;
  const remedy = `run kubectl -n ${namespace} describe pod and kubectl logs for these pods. They need two nodes`;
  return [
    (ready === 0 ? errorOf : warningOf)('responders', `StatefulSet ${namespace}/${name}`, problem, remedy),
    ...claims,
  ];
}

/** Each responder answers DHCPv4 from an address of its own. */
function checkClaim(name: string, pool: AddressPool, { claims }: ObservedCluster): Finding[] {
  if (claims === undefined) return [];
  const key = `${RESPONDERS_NAMESPACE}/${name}`;
  const { status } = claims.find((each) => objectKey(each) === key) ?? {};
  if ((status?.ips?.length ?? 0) > 0) return [];
  const refusal = status?.conditions?.find(({ type, status: value }) => type === IPS_ALLOCATED && value === 'False');
  const problem = 'the responder has no address of its own, so it does not answer DHCPv4';
  const remedy = refusal
    ? `add a range to AddressPool ${pool.metadata.name}, or delete VMs that are no longer needed`
    : 'check that holdfast-guest, which creates the claim, and holdfast-ipam are ready';
  const why = refusal ? `: ${refusal.message}` : '';
  return [warningOf('responders', `IPAMClaim ${key}`, `${problem}${why}`, remedy)];
}
