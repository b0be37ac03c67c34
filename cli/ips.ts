import type { AddressLease } from '../api/address-lease.js';
import { type IPAMClaim, labelValue, claimNadOf, claimOwnerOf, claimVmNetworkOf } from '../api/ipam-claim.js';
import { isBeingDeleted } from '../api/meta.js';
import { IPS_ALLOCATED, LEASE_OWNER_NAMESPACE } from '../api/names.js';
import type { Client } from '../kube/client.js';
import { ADDRESS_LEASES, IPAM_CLAIMS } from '../kube/resources.js';
import { type Column, type Output, tableLines } from './output.js';
import { INSTALL_HOLDFAST, readList, required } from './reader.js';

export interface IpsOptions {
  /** Default: that of the context. */
  readonly namespace?: string;
  readonly allNamespaces: boolean;
}

/** The addresses of one interface, or the reason why it has none. */
export interface IpsRow {
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
  /** `Running` on which pod, `Stopped`, `Releasing`, or the reason why there are no addresses. */
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
export async function listIps(options: IpsOptions, client: Pick<Client, 'list'>, home: string): Promise<Output> {
  const namespace = options.allNamespaces ? undefined : (options.namespace ?? home);
  const [claims, leases] = await Promise.all([
    readList(client, IPAM_CLAIMS, { namespace }),
    listLeases(client, namespace),
  ]);
  const rows = rowsOf(required(claims, INSTALL_HOLDFAST), leases);
  const columns = namespace === undefined ? [NAMESPACE, ...COLUMNS] : COLUMNS;
  const place = namespace === undefined ? 'the cluster' : `namespace ${namespace}`;
  return {
    data: rows,
    lines: (isWide) => (rows.length === 0 ? [`no addresses found in ${place}`] : tableLines(columns, rows, isWide)),
  };
}

/** VMs come first, sorted by name. Released and reserved leases have no row. */
function rowsOf(claims: readonly IPAMClaim[], leases: readonly AddressLease[]): IpsRow[] {
  const held = leases.filter(({ spec }) => spec.owner !== undefined && spec.releasedAt === undefined);
  const byOwner = new Map<string, AddressLease[]>();
  for (const lease of held) {
    const uid = lease.spec.owner?.uid ?? '';
    byOwner.set(uid, [...(byOwner.get(uid) ?? []), lease]);
  }
  const rows = claims.map((claim) => rowOfClaim(claim, byOwner.get(claim.metadata.uid ?? '') ?? []));
  for (const own of byOwner.values()) {
    if (own[0]?.spec.owner?.kind === 'Pod') rows.push(...rowsOfPod(own));
  }
  return rows.sort(compareRows);
}

function rowOfClaim(claim: IPAMClaim, leases: readonly AddressLease[]): IpsRow {
  const { namespace = '', name } = claim.metadata;
  return {
    namespace,
    owner: claimOwnerOf(claim)?.name ?? name,
    kind: 'VM',
    interface: claimVmNetworkOf(claim) ?? claim.spec.interface,
    nad: claimNadOf(claim) ?? '',
    addresses: claim.status?.ips ?? [],
    pool: leases[0]?.spec.pool ?? '',
    state: stateOfClaim(claim),
  };
}

function stateOfClaim(claim: IPAMClaim): string {
  if (isBeingDeleted(claim)) return 'Releasing';
  const { ownerPod } = claim.status ?? {};
  const ips = claim.status?.ips ?? [];
  const conditions = claim.status?.conditions ?? [];
  const condition = conditions.find(({ type }) => type === IPS_ALLOCATED);
  if (condition?.status === 'False') return condition.reason;
  if (ips.length === 0) return 'Waiting';
  return ownerPod?.name ? `Running (${ownerPod.name})` : 'Stopped';
}

/** Returns one row for each interface. */
function rowsOfPod(leases: readonly AddressLease[]): IpsRow[] {
  const interfaces = new Map<string, AddressLease[]>();
  for (const lease of leases) {
    const name = lease.spec.interface ?? '';
    interfaces.set(name, [...(interfaces.get(name) ?? []), lease]);
  }
  return [...interfaces].map(([name, own]) => {
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
