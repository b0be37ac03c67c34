import { describeLeaseOwner } from '../../api/address-lease.js';
import { nameFirst } from '../../api/json.js';
import { type AddressPool, adminPoolFor, isAdminPool, nadNamespaceOf } from '../../api/address-pool.js';
import { BAD_POOL_CONDITIONS } from '../../api/conditions.js';
import { describesPool } from '../../api/networks/ipam-config.js';
import { readIpamDelegation } from '../../api/networks/ipam-delegation.js';
import { objectKey } from '../../api/meta.js';
import { type NetworkAttachmentDefinition, parseNetworkConfig } from '../../api/networks/network-attachment.js';
import { bridgeAddressProblems } from '../../addressing/pool/bridge-address.js';
import { compilePool } from '../../addressing/pool/pool.js';
import { docsUrl } from '../../process/docs-url.js';
import { needsAction } from '../usage/pools.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

/** ipam derives the pool of a NAD within a second. */
const UNSERVED_MS = 60_000;

/** Pools whose conditions say that something is wrong: NADs that disagree, overlaps on one wire, conflicts. */
export function checkPools({ pools = [] }: ObservedCluster): Finding[] {
  const own = pools.filter(isAdminPool);
  const derived = pools.filter((pool) => !isAdminPool(pool));
  return [...own, ...derived].flatMap((pool) =>
    BAD_POOL_CONDITIONS.flatMap(({ type, status, health }) => {
      const found = pool.status?.conditions?.find((each) => each.type === type && each.status === status);
      if (found === undefined || !needsAction(pool, found)) return [];
      const problem = `${type} is ${status} (${found.reason}): ${found.message}`;
      const remedy = `see ${found.reason} in ${docsUrl('reference/conditions.md#conditions-of-a-pool')}`;
      const findingOf = health === 'wrong' ? errorOf : warningOf;
      const finding = findingOf('pools', `AddressPool ${pool.metadata.name}`, problem, remedy);
      return [{ ...finding, reason: found.reason }];
    }),
  );
}

/** NADs that Holdfast cannot read, or for which there is no pool. */
export function checkNads({ nads = [], pools, now = Infinity }: ObservedCluster): Finding[] {
  return nads.flatMap((nad) => {
    const object = `NetworkAttachmentDefinition ${objectKey(nad)}`;
    const delegation = readIpamDelegation(nad);
    if (delegation.kind === 'invalid') {
      if (!/holdfast/i.test(nad.spec?.config ?? '')) return [];
      const { field, message } = delegation.problem;
      return [errorOf('nads', object, `${field} ${message}`, `correct the config: ${docsUrl('how-to/pools.md')}`)];
    }
    if (delegation.kind !== 'holdfast' || pools === undefined) return [];
    const serving = poolsOf(nad, pools);
    if (serving?.length !== 0) return checkBridge(nad, serving, object);
    // its pool is derived meanwhile
    if (now - Date.parse(nad.metadata.creationTimestamp ?? '') < UNSERVED_MS) return [];
    const remedy = describesPool(delegation.config)
      ? 'look at the events of the NAD, and check that ipam is ready'
      : 'create an AddressPool for the network, or add subnets to the ipam object of the NAD';
    return [errorOf('nads', object, 'no AddressPool serves its network', remedy)];
  });
}

/** @returns undefined if the config of the NAD cannot be read */
function poolsOf(nad: NetworkAttachmentDefinition, pools: readonly AddressPool[]): readonly AddressPool[] | undefined {
  const config = parseNetworkConfig(nad);
  if (!config.ok) return undefined;
  return pools.filter((pool) => {
    const namespace = nadNamespaceOf(pool);
    return (
      pool.spec.network === config.network.name && (namespace ?? nad.metadata.namespace) === nad.metadata.namespace
    );
  });
}

function checkBridge(nad: NetworkAttachmentDefinition, pools: readonly AddressPool[] = [], object: string): Finding[] {
  const config = parseNetworkConfig(nad);
  const pool = adminPoolFor({ metadata: nad.metadata, config }, pools) ?? pools.find((each) => !isAdminPool(each));
  const compiled = pool && compilePool(pool);
  if (compiled?.ok !== true) return [];
  const remedy = `see ${docsUrl('how-to/pools.md#the-gateway-of-a-bridge')}`;
  return bridgeAddressProblems(nad, compiled.pool).map((problem) => errorOf('nads', object, problem, remedy));
}

/** An owner that is gone for less than this time is no leak: the collector waits, too. */
const SETTLED_MS = 15 * 60_000;
const MAX_NAMED = 5;

/** Leases whose owners are gone. */
export function checkLeaks({ ownerlessLeases = [], now }: ObservedCluster): Finding[] {
  const leaked = ownerlessLeases.filter(({ createdAt }) => now !== undefined && now - createdAt > SETTLED_MS);
  const names = leaked.map(({ name, owner }) => `${name} (${describeLeaseOwner(owner)})`);
  const remedy =
    'they are released when --collect-after is over. If they stay, the log of ipam says why, and for leases of pods that of the agent';
  return leaseFindings('leaks', names, 'their owners do not exist', remedy);
}

function leaseFindings(check: string, names: readonly string[], problem: string, remedy: string): Finding[] {
  if (names.length === 0) return [];
  return [warningOf(check, `AddressLeases (${names.length})`, `${problem}: ${nameFirst(names, MAX_NAMED)}`, remedy)];
}

/** Released addresses that nobody gets, because Secrets with network data may still hold them. */
export function checkLockedLeases({ lockedLeases = [], now }: ObservedCluster): Finding[] {
  const locked = lockedLeases.filter(({ releasedAt }) => now !== undefined && now - releasedAt > SETTLED_MS);
  const names = locked.map(({ name, secret }) => `${name} (Secret ${secret})`);
  const problem = 'nobody gets these released addresses, because Secrets with network data may still hold them';
  const remedy = `the process guest removes them: its log says why it has not. If guest was removed for good, see ${docsUrl('how-to/uninstall.md')}`;
  return leaseFindings('locks', names, problem, remedy);
}
