import type { IPAMClaim } from '../../api/ipam-claim.js';
import { splitKey } from '../../api/meta.js';
import { findUnlessGone } from '../../kube/absence.js';
import { Cache } from '../../kube/cache.js';
import type { CallOptions, Client } from '../../kube/client.js';
import { IPAM_CLAIMS, PODS } from '../../kube/resources.js';
import { transformServedClaim } from './claim-transform.js';
import { CLAIM_PODS, type ClaimPod, ClaimPods, transformClaimPod } from './claim-pods.js';

/** Live reads, for decisions that must not be based on caches. */

/** @returns undefined if the API server answers that the claim does not exist */
export async function readClaim(
  key: string,
  client: Pick<Client, 'get'>,
  call: CallOptions,
): Promise<IPAMClaim | undefined> {
  const claim = await findUnlessGone(client, IPAM_CLAIMS, splitKey(key), call);
  return claim && transformServedClaim(claim);
}

/** Lists the pods that use the claim or may use it. */
export async function listClaimPods(
  claim: IPAMClaim,
  client: Pick<Client, 'listAs'>,
  { signal }: CallOptions,
): Promise<readonly ClaimPod[]> {
  const { namespace } = claim.metadata;
  const { items } = await client.listAs(PODS, transformClaimPod, { namespace, ...(signal && { signal }) });
  const cache = new Cache<ClaimPod>(CLAIM_PODS.indexes);
  for (const pod of items) cache.set(pod);
  return new ClaimPods({ cache, onChange: () => undefined }, { byIndex: () => [] }).podsOf(claim);
}
