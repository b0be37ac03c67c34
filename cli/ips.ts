import type { AddressLease } from '../api/address-lease.js';
import { type IPAMClaim, labelValue, claimNadOf, claimOwnerOf, claimVmNetworkOf } from '../api/ipam-claim.js';
import { isBeingDeleted, joinKey, objectKey } from '../api/meta.js';
import { IPS_ALLOCATED, LEASE_OWNER_NAMESPACE } from '../api/names.js';
import type { Client } from '../kube/client.js';
import { ADDRESS_LEASES, IPAM_CLAIMS, VIRTUAL_MACHINES } from '../kube/resources.js';
import type { CommonOptions } from './command.js';
import { groupBy } from './group-by.js';
import { type Column, type Output, tableLines } from './output.js';
import { INSTALL_HOLDFAST, readList, required, valueOf } from './reader.js';
import type { TracedVm } from './trace/observed.js';

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

/** What KubeVirt says about VMs, by `namespace/name`. */
type VmStatuses = ReadonlyMap<string, string | undefined>;

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
  client: Pick<Client, 'list'>,
  home: string,
): Promise<Output> {
  const namespace = options.allNamespaces ? undefined : (options.namespace ?? home);
  const [claims, leases, vms] = await Promise.all([
    readList(client, IPAM_CLAIMS, { namespace }),
    listLeases(client, namespace),
    readList(client, VIRTUAL_MACHINES, { namespace }),
  ]);
  const statuses = new Map(
    valueOf(vms, []).map((vm: TracedVm) => [objectKey(vm), vm.status?.printableStatus] as const),
  );
  const rows = rowsOf(required(claims, INSTALL_HOLDFAST), leases, statuses);
  const columns = namespace === undefined ? [NAMESPACE, ...COLUMNS] : COLUMNS;
  const place = namespace === undefined ? 'the cluster' : `namespace ${namespace}`;
  return {
    data: rows,
    lines: (isWide) => (rows.length === 0 ? [`no addresses found in ${place}`] : tableLines(columns, rows, isWide)),
  };
}

/** VMs come first, sorted by name. Released and reserved leases have no row. */
function rowsOf(claims: readonly IPAMClaim[], leases: readonly AddressLease[], statuses: VmStatuses): IpsRow[] {
  const held = leases.filter(({ spec }) => spec.owner !== undefined && spec.releasedAt === undefined);
  const byOwner = groupBy(held, ({ spec }) => spec.owner?.uid ?? '');
  const rows = claims.map((claim) => rowOfClaim(claim, byOwner.get(claim.metadata.uid ?? '') ?? [], statuses));
  for (const own of byOwner.values()) {
    if (own[0]?.spec.owner?.kind === 'Pod') rows.push(...rowsOfPod(own));
  }
  return rows.sort(compareRows);
}

function rowOfClaim(claim: IPAMClaim, leases: readonly AddressLease[], statuses: VmStatuses): IpsRow {
  const { namespace = '', name } = claim.metadata;
  const owner = claimOwnerOf(claim)?.name ?? name;
  return {
    namespace,
    owner,
    kind: 'VM',
    interface: claimVmNetworkOf(claim) ?? claim.spec.interface,
    nad: claimNadOf(claim) ?? '',
    addresses: claim.status?.ips ?? [],
    pool: leases[0]?.spec.pool ?? '',
    state: stateOfClaim(claim, statuses.get(joinKey(namespace, owner))),
  };
}

function stateOfClaim(claim: IPAMClaim, vmStatus: string | undefined): string {
  // another IPAM may write null
  const { ownerPod, ips, conditions } = claim.status ?? {};
  const pod = ownerPod?.name ?? '';
  // a claim that was deleted serves its pod until that ends
  if (isBeingDeleted(claim) && pod === '') return 'Releasing';
  const failure = conditions?.find(({ type, status }) => type === IPS_ALLOCATED && status === 'False');
  if (failure) return failure.reason;
  if (!ips?.length) return 'Waiting';
  return pod === '' ? (vmStatus ?? 'Not in use') : `Running (${pod})`;
}

/** Returns one row for each interface. */
function rowsOfPod(leases: readonly AddressLease[]): IpsRow[] {
  return [...groupBy(leases, ({ spec }) => spec.interface ?? '')].map(([name, own]) => {
    const { owner, node } = own[0]?.spec ?? {};
    return {
      namespace: owner?.namespace ?? '',
      owner: owner?.name ?? '',
      kind: 'Pod',
      interface: name,
      nad: '',
      addresses: own.map(({ spec }) => spec.address).sort(),
      pool: own[0]?.spec.pool ?? '',
      state: node ? `Running (${node})` : 'Running',
    };
  });
}

function compareRows(a: IpsRow, b: IpsRow): number {
  const [left, right] = [a, b].map(({ namespace, kind, owner, interface: name }) =>
    JSON.stringify([namespace, kind === 'VM' ? 0 : 1, owner, name]),
  );
  return (left ?? '') < (right ?? '') ? -1 : 1;
}

/** Users who may read only their namespace see no leases, and so no pools. */
async function listLeases(client: Pick<Client, 'list'>, namespace: string | undefined): Promise<AddressLease[]> {
  const labelSelector = namespace === undefined ? undefined : `${LEASE_OWNER_NAMESPACE}=${labelValue(namespace)}`;
  const read = await readList(client, ADDRESS_LEASES, { labelSelector });
  return read.kind === 'forbidden' ? [] : required(read, INSTALL_HOLDFAST);
}
