import { claimMacOf } from '../../api/ipam-claim.js';
import { parseMac } from '../../api/mac-address.js';
import { joinKey } from '../../api/meta.js';
import { type Address, formatAddress, sameAddress } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { compilePool, subnetOf } from '../../addressing/pool/pool.js';
import type { ClusterWatch } from './cluster-watch.js';
import { readMapAddress } from './map-window.js';
import { poolHref, vmHref } from './route.js';
import type { SearchHit, SearchView } from './protocol.js';
import { boundedList, claimRow, contains, describeLease, vmRows } from './rows.js';

/** Enough to find that a query is too short. */
const MAX_HITS = 1_000;

/** Finds what a query names: an address, a MAC address, or words in names of VMs, namespaces, pools, nodes, and in addresses. */
export function searchView(query: string, cluster: ClusterWatch): SearchView {
  return { view: 'search', hits: boundedList(hitsOf(query.trim(), cluster)) };
}

function hitsOf(text: string, cluster: ClusterWatch): SearchHit[] {
  const address = readMapAddress(text);
  if (address !== undefined) return hitsOfAddress(address, cluster);
  const mac = parseMac(text);
  if (mac !== undefined) return hitsOfMac(mac, cluster);
  return text === '' ? [] : hitsOfWords(text, cluster);
}

function hitsOfAddress(address: Address, cluster: ClusterWatch): SearchHit[] {
  const leases = cluster.leases.cache.list().filter((lease) => sameAddress(lease.address, address));
  const pools = cluster.pools.cache.list().flatMap((object): SearchHit[] => {
    const compiled = compilePool(object);
    const subnet = compiled.ok ? subnetOf(compiled.pool, address) : undefined;
    if (subnet === undefined || leases.some(({ pool }) => pool === object.metadata.name)) return [];
    const detail = subnet.leasable.has(address.value) ? 'has no lease' : 'is never allocated';
    return [hitOfAddress(address, object.metadata.name, `${detail} in pool ${object.metadata.name}`)];
  });
  return [...leases.map((lease) => hitOfLease(lease, cluster)), ...pools];
}

function hitsOfMac(mac: string, cluster: ClusterWatch): SearchHit[] {
  const leases = cluster.leases.cache.list().filter((lease) => lease.mac === mac);
  const claims = cluster.claims.cache
    .list()
    .filter((claim) => claimMacOf(claim) === mac)
    .map(claimRow);
  const vmis = cluster.vmis.cache.list().filter(({ macs }) => macs.includes(mac));
  return [
    ...claims.map(({ namespace, vm, network }) => hitOfVm(namespace, vm, `has ${mac} on network ${network}`)),
    ...vmis.map(({ metadata: { namespace = '', name } }) => hitOfVm(namespace, name, `runs with ${mac}`)),
    ...leases.map((lease) => hitOfLease(lease, cluster)),
  ];
}

function hitsOfWords(text: string, cluster: ClusterWatch): SearchHit[] {
  const vms = vmRows(cluster);
  const namespaces = [...new Set(vms.map(({ namespace }) => namespace))].filter((name) => contains([name], text));
  const pools = cluster.pools.cache
    .list()
    .filter(({ metadata, spec }) => contains([metadata.name, spec.network], text));
  const hits = [
    ...pools.map(({ metadata: { name }, spec }): SearchHit => {
      return { kind: 'Pool', text: name, detail: `of network ${spec.network}`, href: poolHref(name) };
    }),
    ...namespaces.map((name): SearchHit => {
      return { kind: 'Namespace', text: name, detail: 'its VMs', href: `#/vms?q=${encodeURIComponent(name)}` };
    }),
    ...vms
      .filter(({ namespace, name, node, addresses }) => contains([joinKey(namespace, name), node, ...addresses], text))
      .map(({ namespace, name, addresses }) => hitOfVm(namespace, name, addresses.join(', ') || 'has no address')),
  ];
  for (const lease of cluster.leases.cache.list()) {
    if (hits.length >= MAX_HITS) break;
    const { owner, mac = '', address } = lease;
    // claims are found by their VM
    if (owner?.kind === 'IPAMClaim' && cluster.claims.status.state !== 'refused') continue;
    const names = owner === undefined ? [] : [owner.namespace, owner.name];
    if (contains([...names, mac, formatAddress(address)], text)) hits.push(hitOfLease(lease, cluster));
  }
  return hits;
}

function hitOfVm(namespace: string, name: string, detail: string): SearchHit {
  return { kind: 'VM', text: `${namespace}/${name}`, detail, href: vmHref(namespace, name) };
}

function hitOfLease(lease: LeaseRecord, cluster: ClusterWatch): SearchHit {
  const { state, owner, pool } = describeLease(lease, cluster);
  const holder = owner && `${owner.vm === undefined ? owner.kind : 'VM'} ${owner.namespace}/${owner.vm ?? owner.name}`;
  return hitOfAddress(lease.address, pool, `${state}${holder === undefined ? '' : `, ${holder}`}, in pool ${pool}`);
}

/** It leads to the window of 256 addresses around the address. */
function hitOfAddress(address: Address, pool: string, detail: string): SearchHit {
  const text = formatAddress(address);
  return { kind: 'Address', text, detail, href: poolHref(pool, { first: text, bits: 8 }) };
}
