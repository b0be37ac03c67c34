import type { AddressLease } from '../api/address-lease.js';
import { type IPAMClaim, labelValue, claimNadOf, claimOwnerOf, claimVmNetworkOf } from '../api/ipam-claim.js';
import { omitUndefined } from '../api/json.js';
import { isBeingDeleted, joinKey, objectKey } from '../api/meta.js';
import { IPS_ALLOCATED, LEASE_OWNER_NAMESPACE } from '../api/names.js';
import { compareAddresses, formatAddress, readAddress } from '../addressing/address/address.js';
import type { Client } from '../kube/client.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, VIRTUAL_MACHINES } from '../kube/resources.js';
import type { CommonOptions } from './command.js';
import { groupBy } from './group-by.js';
import { type Column, type Output, tableLines } from './output.js';
import { INSTALL_HOLDFAST, LEASE_PAGES, type Read, readListAs, required, valueOf } from './reader.js';

/** The addresses of one interface, or the reason why it has none. */
interface IpsRow {
  readonly namespace: string;
  /** The name of the VM, or of a pod without a claim. */
  readonly owner: string;
  readonly kind: 'VM' | 'Pod';
  /** The name in the VM's spec, or the interface in the pod. */
  readonly interface: string;
  /** `namespace/name` of the NAD if it is known. */
  readonly nad: string;
  readonly addresses: readonly string[];
  /** Empty if there is no lease, or the user may not list leases. */
  readonly pool: string;
  /** `Running` on which pod, the status of a VM without one, `Releasing`, or the reason why there are no addresses. */
  readonly state: string;
}

const COLUMNS: readonly Column<IpsRow>[] = [
  { header: 'KIND', value: ({ kind }) => kind },
  { header: 'NAME', value: ({ owner }) => owner },
  { header: 'INTERFACE', value: (row) => row.interface },
  { header: 'NAD', value: ({ nad }) => nad },
  { header: 'ADDRESSES', value: ({ addresses }) => addresses.join(' ') },
  { header: 'POOL', value: ({ pool }) => pool },
  { header: 'STATE', value: ({ state }) => state },
];
const NAMESPACE: Column<IpsRow> = { header: 'NAMESPACE', value: ({ namespace }) => namespace };

/** @param home the namespace of the context */
export async function listIps(
  options: Omit<CommonOptions, 'output'>,
  client: Pick<Client, 'listAs'>,
  home: string,
): Promise<Output> {
  const namespace = options.allNamespaces ? undefined : (options.namespace ?? home);
  const [claims, leases, vms] = await Promise.all([
    readListAs(client, IPAM_CLAIMS, (claim) => [[claim.metadata.uid ?? '', rowOfClaim(claim)] as const], { namespace }),
    listHeldLeases(client, namespace),
    // what KubeVirt says about each VM
    readListAs(client, VIRTUAL_MACHINES, (vm) => [[objectKey(vm), vm.status?.printableStatus] as const], { namespace }),
  ]);
  // users who may read only their namespace see no leases, and so no pools
  const held = leases.kind === 'forbidden' ? [] : required(leases, INSTALL_HOLDFAST);
  const rows = rowsOf(required(claims, INSTALL_HOLDFAST), held, new Map(valueOf(vms, [])));
  const columns = namespace === undefined ? [NAMESPACE, ...COLUMNS] : COLUMNS;
  const place = namespace === undefined ? 'the cluster' : `namespace ${namespace}`;
  const none =
    leases.kind === 'forbidden'
      ? `no VM with addresses found in ${place}; addresses of pods without claims are not shown: ${leases.why}`
      : `no addresses found in ${place}`;
  return { data: rows, lines: (isWide) => (rows.length === 0 ? [none] : tableLines(columns, rows, isWide)) };
}

type HeldLease = Pick<AddressLease['spec'], 'address' | 'pool' | 'interface' | 'node'> & {
  readonly owner: NonNullable<AddressLease['spec']['owner']>;
};

/** VMs come first, sorted by name. Released and reserved leases have no row. @param claims with their UIDs */
function rowsOf(
  claims: readonly (readonly [string, IpsRow])[],
  leases: readonly HeldLease[],
  statuses: ReadonlyMap<string, string | undefined>,
): IpsRow[] {
  const byOwner = groupBy(leases, ({ owner }) => owner.uid);
  const rows = claims.map(([uid, row]) => {
    const state = row.state || (statuses.get(joinKey(row.namespace, row.owner)) ?? 'Not in use');
    return { ...row, pool: byOwner.get(uid)?.[0]?.pool ?? '', state };
  });
  for (const own of byOwner.values()) {
    if (own[0]?.owner.kind === 'Pod') rows.push(...rowsOfPod(own));
  }
  return rows.sort(compareRows);
}

/** Without the pool, which a lease knows. The state is empty if it is that of the VM. */
function rowOfClaim(claim: IPAMClaim): IpsRow {
  const { namespace = '', name } = claim.metadata;
  return {
    namespace,
    owner: claimOwnerOf(claim)?.name ?? name,
    kind: 'VM',
    interface: claimVmNetworkOf(claim) ?? claim.spec.interface,
    nad: claimNadOf(claim) ?? '',
    addresses: claim.status?.ips ?? [],
    pool: '',
    state: stateOfClaim(claim),
  };
}

function stateOfClaim(claim: IPAMClaim): string {
  // another IPAM may write null
  const { ownerPod, ips, conditions } = claim.status ?? {};
  const pod = ownerPod?.name ?? '';
  // a claim that was deleted serves its pod until that ends
  if (isBeingDeleted(claim) && pod === '') return 'Releasing';
  const failure = conditions?.find(({ type, status }) => type === IPS_ALLOCATED && status === 'False');
  if (failure) return failure.reason;
  if (!ips?.length) return 'Waiting';
  return pod === '' ? '' : `Running (${pod})`;
}

/** Returns one row for each interface. */
function rowsOfPod(leases: readonly HeldLease[]): IpsRow[] {
  return [...groupBy(leases, (lease) => lease.interface ?? '')].map(([name, own]) => {
    const { owner, node, pool = '' } = own[0] ?? {};
    const addresses = own.flatMap(({ address }) => readAddress(address) ?? []).toSorted(compareAddresses);
    return {
      ...{ namespace: owner?.namespace ?? '', owner: owner?.name ?? '', kind: 'Pod', interface: name, nad: '' },
      addresses: addresses.map(formatAddress),
      pool,
      state: node ? `Running (${node})` : 'Running',
    };
  });
}

function compareRows(a: IpsRow, b: IpsRow): number {
  const differing = (['namespace', 'kind', 'owner', 'interface'] as const).find((field) => a[field] !== b[field]);
  if (differing === 'kind') return a.kind === 'VM' ? -1 : 1;
  return differing === undefined || a[differing] < b[differing] ? -1 : 1;
}

function listHeldLeases(
  client: Pick<Client, 'listAs'>,
  namespace: string | undefined,
): Promise<Read<readonly HeldLease[]>> {
  const labelSelector = namespace === undefined ? undefined : `${LEASE_OWNER_NAMESPACE}=${labelValue(namespace)}`;
  const heldOf = ({ spec: { owner, releasedAt, address, pool, interface: name, node } }: AddressLease): HeldLease[] =>
    owner === undefined || releasedAt !== undefined
      ? []
      : [omitUndefined({ owner, address, pool, interface: name, node })];
  return readListAs(client, ADDRESS_LEASES, heldOf, { ...LEASE_PAGES, labelSelector });
}
