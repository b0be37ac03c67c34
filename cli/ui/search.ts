import { claimMacOf } from '../../api/ipam-claim.js';
import { parseMac } from '../../api/mac-address.js';
import { type Address, formatAddress, readAddress, sameAddress } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { compilePool, subnetOf } from '../../addressing/pool/pool.js';
import { boundedList } from './bounds.js';
import type { ClusterWatch } from './cluster-watch.js';
import { poolHref, vmHref } from './route.js';
import type { SearchHit, SearchView, VmRow } from './protocol.js';
import { claimRow, describeLease, matching } from './rows.js';

/** Finds what a query names: an address, a MAC address, or words in names of VMs, namespaces, pools, nodes, and in addresses. */
export function searchView(query: string, cluster: ClusterWatch): SearchView {
  const { rows, total } = boundedList(hitsOf(query.trim(), cluster));
  return { view: 'search', hits: { rows: rows.map((hit) => hit()), total } };
}

/** Makes a hit, of which only the first ones are shown. */
type Hit = () => SearchHit;

function hitsOf(text: string, cluster: ClusterWatch): Hit[] {
  const address = readAddress(text);
  if (address !== undefined) return hitsOfAddress(address, cluster);
  const mac = parseMac(text);
  if (mac !== undefined) return hitsOfMac(mac, cluster);
  return text === '' ? [] : hitsOfWords(text, cluster);
}

function hitsOfAddress(address: Address, cluster: ClusterWatch): Hit[] {
  const leases = cluster.leases.cache.list().filter((lease) => sameAddress(lease.address, address));
  const pools = cluster.pools.cache.list().flatMap((object): Hit[] => {
    const compiled = compilePool(object);
    const subnet = compiled.ok ? subnetOf(compiled.pool, address) : undefined;
    if (subnet === undefined || leases.some(({ pool }) => pool === object.metadata.name)) return [];
    const detail = subnet.leasable.has(address.value) ? 'has no lease' : 'is never allocated';
    return [() => hitOfAddress(address, object.metadata.name, `${detail} in pool ${object.metadata.name}`)];
  });
  return [...hitsOfLeases(leases, cluster), ...pools];
}

function hitsOfMac(mac: string, cluster: ClusterWatch): Hit[] {
  const leases = cluster.leases.cache.list().filter((lease) => lease.mac === mac);
  const claims = cluster.claims.cache
    .list()
    .filter((claim) => claimMacOf(claim) === mac)
    .map(claimRow);
  const vmis = cluster.vmis.cache.list().filter(({ macs }) => macs.includes(mac));
  return [
    ...claims.map(({ namespace, vm, network }) => hitOfVm(namespace, vm, () => `has ${mac} on network ${network}`)),
    ...vmis.map(({ metadata: { namespace = '', name } }) => hitOfVm(namespace, name, () => `runs with ${mac}`)),
    ...hitsOfLeases(leases, cluster),
  ];
}

function hitsOfWords(text: string, cluster: ClusterWatch): Hit[] {
  const rows = cluster.vmTable.rows();
  const namespaces = [...new Set(rows.map(({ namespace }) => namespace))];
  const pools = matching(cluster.pools.cache.list(), text, ({ metadata, spec }) => `${metadata.name} ${spec.network}`);
  const textOf = ({ namespace, name, node, addresses }: VmRow) => `${namespace}/${name} ${node} ${addresses.join(' ')}`;
  const areClaimsRefused = cluster.claims.status.state === 'refused';
  // claims are found by their VM
  const leases = cluster.leases.cache.list().filter(({ owner }) => owner?.kind !== 'IPAMClaim' || areClaimsRefused);
  const textOfLease = ({ owner, mac = '', address }: LeaseRecord) =>
    `${owner?.namespace ?? ''} ${owner?.name ?? ''} ${mac} ${formatAddress(address)}`;
  return [
    ...pools.map(({ metadata: { name }, spec }): Hit => () => {
      return { kind: 'Pool', text: name, detail: `of network ${spec.network}`, href: poolHref(name) };
    }),
    ...matching(namespaces, text, (name) => name).map((name): Hit => () => {
      return { kind: 'Namespace', text: name, detail: 'its VMs', href: `#/vms?q=${encodeURIComponent(name)}` };
    }),
    ...matching(rows, text, textOf).map(({ namespace, name, addresses }) =>
      hitOfVm(namespace, name, () => addresses.join(', ') || 'has no address'),
    ),
    ...hitsOfLeases(matching(leases, text, textOfLease), cluster),
  ];
}

function hitOfVm(namespace: string, name: string, detail: () => string): Hit {
  return () => ({ kind: 'VM', text: `${namespace}/${name}`, detail: detail(), href: vmHref(namespace, name) });
}

function hitsOfLeases(leases: readonly LeaseRecord[], cluster: ClusterWatch): Hit[] {
  return leases.map((lease) => () => {
    const { state, owner, pool } = describeLease(lease, cluster);
    const holder =
      owner && `, ${owner.vm === undefined ? owner.kind : 'VM'} ${owner.namespace}/${owner.vm ?? owner.name}`;
    return hitOfAddress(lease.address, pool, `${state}${holder ?? ''}, in pool ${pool}`);
  });
}

/** It leads to the window of 256 addresses around the address. */
function hitOfAddress(address: Address, pool: string, detail: string): SearchHit {
  const text = formatAddress(address);
  return { kind: 'Address', text, detail, href: poolHref(pool, { first: text, bits: 8 }) };
}
