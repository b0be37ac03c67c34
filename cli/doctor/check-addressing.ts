import { type AddressPool, nadNamespaceOf } from '../../api/address-pool.js';
import { BAD_POOL_CONDITIONS } from '../../api/conditions.js';
import { type IPAMClaim, claimNadOf } from '../../api/ipam-claim.js';
import { readIpamDelegation } from '../../api/ipam-delegation.js';
import { isBeingDeleted, objectKey } from '../../api/meta.js';
import { IPS_ALLOCATED } from '../../api/names.js';
import { type NetworkAttachmentDefinition, parseNetworkConfig } from '../../api/network-attachment.js';
import { firstOfMany } from '../output.js';
import { needsAction } from '../usage/pools.js';
import { type Finding, errorOf, errorsFirst, isError, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

/** Tenants create NADs, from which pools are derived. Their number must not hide what else is wrong. */
const MAX_SHOWN = 20;
/** An IPAM answers a claim within a second, and derives the pool of a NAD as fast. */
const UNANSWERED_MS = 60_000;

/** Pools whose conditions say that something is wrong: NADs that disagree, overlaps on one wire, conflicts. */
export function checkPools({ pools = [] }: ObservedCluster): Finding[] {
  const own = pools.filter((pool) => nadNamespaceOf(pool) === undefined);
  const derived = pools.filter((pool) => nadNamespaceOf(pool) !== undefined);
  const findings = [...own, ...derived].flatMap((pool) =>
    BAD_POOL_CONDITIONS.flatMap(({ type, status, health }) => {
      const found = pool.status?.conditions?.find((each) => each.type === type && each.status === status);
      if (found === undefined || !needsAction(pool, found)) return [];
      const problem = `${type} is ${status} (${found.reason}): ${found.message}`;
      const remedy = `see ${found.reason} in docs/reference/conditions.md`;
      const findingOf = health === 'wrong' ? errorOf : warningOf;
      return [findingOf('pools', `AddressPool ${pool.metadata.name}`, problem, remedy)];
    }),
  );
  return shorten('pools', 'AddressPools', findings);
}

/** NADs that Holdfast cannot read, or for which there is no pool. */
export function checkNads({ nads = [], pools, now = Infinity }: ObservedCluster): Finding[] {
  const findings = nads.flatMap((nad) => {
    const object = `NetworkAttachmentDefinition ${objectKey(nad)}`;
    const delegation = readIpamDelegation(nad);
    if (delegation.kind === 'invalid') {
      if (!/holdfast/i.test(nad.spec?.config ?? '')) return [];
      const { field, message } = delegation.problem;
      return [errorOf('nads', object, `${field} ${message}`, 'correct the config: docs/how-to/pools.md')];
    }
    if (delegation.kind !== 'holdfast' || pools === undefined || hasPool(nad, pools)) return [];
    // its pool is derived meanwhile
    if (now - Date.parse(nad.metadata.creationTimestamp ?? '') < UNANSWERED_MS) return [];
    const remedy = 'look at the events of the NAD, and check that ipam is ready';
    return [errorOf('nads', object, 'no AddressPool serves its network', remedy)];
  });
  return shorten('nads', 'NetworkAttachmentDefinitions', findings);
}

/** Keeps the first findings, the errors before the warnings. The rest is one finding, an error if one of them is. */
export function shorten(check: string, objects: string, findings: readonly Finding[]): Finding[] {
  const sorted = errorsFirst(findings);
  const more = sorted.slice(MAX_SHOWN);
  if (more.length === 0) return sorted;
  const remedy = 'correct those that are shown, and run the command again';
  const findingOf = more.some(isError) ? errorOf : warningOf;
  return [
    ...sorted.slice(0, MAX_SHOWN),
    findingOf(check, `${objects} (${more.length} more)`, 'have problems too', remedy),
  ];
}

function hasPool(nad: NetworkAttachmentDefinition, pools: readonly AddressPool[]): boolean {
  const config = parseNetworkConfig(nad);
  if (!config.ok) return true;
  return pools.some((pool) => {
    const namespace = nadNamespaceOf(pool);
    return (
      pool.spec.network === config.network.name && (namespace ?? nad.metadata.namespace) === nad.metadata.namespace
    );
  });
}

/** An owner that is gone for less than this time is no leak: the collector waits, too. */
const SETTLED_MS = 15 * 60_000;
const MAX_NAMED = 5;

/** Leases whose owners are gone. */
export function checkLeaks({ leases, owners, now }: ObservedCluster): Finding[] {
  if (leases === undefined || owners === undefined || now === undefined) return [];
  const leaked = leases.filter(({ owner, createdAt }) => !owners.has(owner.uid) && now - createdAt > SETTLED_MS);
  if (leaked.length === 0) return [];
  const names = leaked.map(({ name, owner }) => `${name} (${owner.kind} ${owner.namespace}/${owner.name})`);
  return [
    warningOf(
      'leaks',
      `AddressLeases (${leaked.length})`,
      `their owners do not exist: ${firstOfMany(names, MAX_NAMED)}`,
      'ipam releases them when --collect-after is over. If they stay, the log of ipam says why',
    ),
  ];
}

/** Released addresses that nobody gets, because Secrets with network data may still hold them. */
export function checkLockedLeases({ lockedLeases = [], now }: ObservedCluster): Finding[] {
  const locked = lockedLeases.filter(({ releasedAt }) => now !== undefined && now - releasedAt > SETTLED_MS);
  if (locked.length === 0) return [];
  const names = locked.map(({ name, secret }) => `${name} (Secret ${secret})`);
  return [
    warningOf(
      'locks',
      `AddressLeases (${locked.length})`,
      `nobody gets these released addresses, because Secrets with network data may still hold them: ${firstOfMany(names, MAX_NAMED)}`,
      'the process guest removes them: its log says why it has not. If guest was removed for good, see docs/how-to/uninstall.md',
    ),
  ];
}

/** Claims that have no address. */
export function checkClaims({ claims = [], nads = [], now }: ObservedCluster): Finding[] {
  const delegating = nads.filter((nad) => readIpamDelegation(nad).kind === 'holdfast');
  const holdfastNads = new Set(delegating.map(objectKey));
  const waiting = claims.flatMap((claim) => {
    const cause = isBeingDeleted(claim) ? undefined : causeOfWait(claim, holdfastNads, now);
    return cause === undefined ? [] : [{ key: objectKey(claim), ...cause }];
  });
  const reasons = [...new Set(waiting.map(({ reason }) => reason))].sort();
  return reasons.map((reason) => {
    const all = waiting.filter((claim) => claim.reason === reason);
    const [first] = all;
    return errorOf(
      'claims',
      `IPAMClaims (${all.length})`,
      `wait for an address because of ${reason}, for example ${first?.key ?? ''}: ${first?.message ?? ''}`,
      'kubectl holdfast ips -A lists them; docs/reference/conditions.md explains the reason',
    );
  });
}

/** Another IPAM may answer only when a pod has a node, so only claims on the NADs of `holdfast ipam` can be late without a reason. */
function causeOfWait(
  claim: IPAMClaim,
  holdfastNads: ReadonlySet<string>,
  now = 0,
): { reason: string; message: string } | undefined {
  const { conditions = [], ips = [] } = claim.status ?? {};
  const condition = conditions.find(({ type }) => type === IPS_ALLOCATED);
  if (condition !== undefined) return condition.status === 'False' ? condition : undefined;
  const age = now - Date.parse(claim.metadata.creationTimestamp ?? '');
  if (ips.length > 0 || !(age > UNANSWERED_MS) || !holdfastNads.has(claimNadOf(claim) ?? '')) return undefined;
  return { reason: 'no answer', message: 'no IPAM has answered it: see the log of ipam' };
}
