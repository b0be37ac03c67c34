import { isIP } from 'node:net';
import { join } from 'node:path';
import { readFileSync } from 'node:fs';
import { expect } from 'chai';
import {
  GUARD_LIMITS,
  GUEST_LIMITS,
  MAX_GUEST_TEXT_LENGTH,
  MAX_NETWORK_DATA_LENGTH,
  MAX_REPORTED_ADDRESSES,
  MAX_MESSAGE_LENGTH,
  MAX_APPLIED_COPY_LENGTH,
  MAX_NAD_CONFIG_LENGTH,
  MAX_NAD_PLUGINS,
  MAX_SUBNETS_LENGTH,
  MAX_POD_CONSTRAINTS,
  POOL_LIMITS,
  MAX_REQUESTED_ADDRESSES_LENGTH,
  MAX_VM_NETWORKS,
} from '../../api/limits.js';
import { DEFAULT_MAX_DERIVED_POOLS } from '../../api/networks/nad-rights.js';
import { NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import { MAX_NETWORK_ELEMENTS } from '../../api/networks/network-selection.js';
import type { Pod } from '../../api/pod.js';
import { readManifests } from '../../bed/control-plane/objects.js';
import { MAX_DHCP_OPTION_BYTES, MAX_NTP_SERVERS } from '../../guest/dhcp-options.js';
import { MAX_SECRET_USERS } from '../../guest/network-data/request.js';
import { MAX_ENTRIES, MAX_NAD_OPTION_SETS } from '../../guest/responder-tables/table.js';
import { reportedAddressesOf, reportedInterfacesOf } from '../../ipam/claims/running/reported-interfaces.js';
import { MAX_READ_NADS } from '../../ipam/pools/requested-pools.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';
import type { StructuralSchema } from '../testing/structural-schema.js';
import { ROOT } from '../../test/source-files.js';
import { MAX_POD_RESOURCES } from '../../webhook/capacity-requests.js';

/** Returns how many addresses are read of a pod for which Multus reports more. */
function reportedAddressesRead(): number {
  const ips = Array.from({ length: 1000 }, (_, index) => `2001:db8::${index.toString(16)}`);
  const annotations = { [NETWORK_STATUS_ANNOTATION]: JSON.stringify([{ name: 'vms/blue', ips }]) };
  const pod = { metadata: { name: 'launcher', namespace: 'vms', annotations } } as Pod;
  return reportedAddressesOf(reportedInterfacesOf(pod)).filter((text) => isIP(text) !== 0).length;
}

async function poolSpec() {
  const [definition] = await readManifests(join(MANIFESTS, 'crds/addresspools.yaml'));
  const { versions } = (
    definition as unknown as { spec: { versions: { schema: { openAPIV3Schema: StructuralSchema } }[] } }
  ).spec;
  return versions[0]!.schema.openAPIV3Schema.properties!.spec!.properties!;
}

describe('the bounds of a pool in the code', () => {
  it('equal the bounds in the CustomResourceDefinition', async () => {
    const spec = await poolSpec();
    const subnet = spec.subnets!.items!.properties!;
    expect(POOL_LIMITS).to.deep.equal({
      subnets: spec.subnets!.maxItems,
      ranges: subnet.ranges!.maxItems,
      exclude: subnet.exclude!.maxItems,
      reserved: subnet.reserved!.maxItems,
      draining: subnet.draining!.maxItems,
      namespaces: spec.namespaces!.maxItems,
      nodeSelector: spec.nodeSelector!.maxProperties,
      cooldownSeconds: spec.cooldownSeconds!.maximum,
      name: spec.network!.maxLength,
      cidr: subnet.cidr!.maxLength,
      element: subnet.ranges!.items!.maxLength,
      gateway: subnet.gateway!.maxLength,
      ttl: spec.stickyMAC!.properties!.ttl!.maxLength,
      labelValue: spec.nodeSelector!.additionalProperties!.maxLength,
    });
    expect(spec.addressSpace!.maxLength).to.equal(POOL_LIMITS.name);
    for (const list of [subnet.exclude, subnet.reserved, subnet.draining]) {
      expect(list!.items!.maxLength).to.equal(POOL_LIMITS.element);
    }
    const guest = spec.guest!.properties!;
    const [dhcp, dns] = [guest.dhcp!.properties!, guest.dns!.properties!];
    const boot = dhcp.boot!.items!.properties!;
    const interval = ({ minimum: least, maximum: most }: StructuralSchema) => ({ least, most });
    expect(dhcp.optionsV6!.maxItems).to.equal(GUEST_LIMITS.dhcpOptions);
    expect(GUEST_LIMITS).to.deep.equal({
      attachment: guest.attachment!.maxLength,
      nameservers: dns.nameservers!.maxItems,
      search: dns.search!.maxItems,
      domain: dns.search!.items!.maxLength,
      searchBytes: 255,
      ntp: guest.ntp!.maxItems,
      routes: guest.routes!.maxItems,
      mtu: interval(guest.mtu!),
      renewSeconds: interval(dhcp.renewSeconds!),
      rebindSeconds: interval(dhcp.rebindSeconds!),
      leaseSeconds: interval(dhcp.leaseSeconds!),
      dhcpOptions: dhcp.options!.maxItems,
      dhcpOptionText: 512,
      bootFiles: dhcp.boot!.maxItems,
      bootArchitectures: boot.architectures!.maxItems,
      bootServers: boot.servers!.maxItems,
      bootParameters: boot.parameters!.maxItems,
    });
  });

  it('equal those of a guard in the CustomResourceDefinition', async () => {
    const { allow } = (await poolSpec()).guard!.properties!;
    const { addresses, macs, claims } = allow!.items!.properties!;
    const lists = {
      allow: allow!.maxItems,
      addresses: addresses!.maxItems,
      macs: macs!.maxItems,
      claims: claims!.maxItems,
    };
    expect(GUARD_LIMITS).to.deep.equal(lists);
  });

  it('are documented together with all other bounds', () => {
    const [text = ''] = readFileSync(join(ROOT, 'docs/reference/bounds.md'), 'utf8').split(/^## /m);
    const bounds = [...text.matchAll(/^\| [^|]+ \| (\d+)[^|]* \|/gm)].map(([, bound]) => Number(bound));
    const { subnets, ranges, exclude, reserved, draining, nodeSelector, namespaces } = POOL_LIMITS;
    const { routes, nameservers, search, ntp, dhcpOptions, bootFiles } = GUEST_LIMITS;
    const ofPools = [subnets, ranges, exclude, reserved, draining, nodeSelector, namespaces];
    const ofGuests = [routes, nameservers, search, ntp, dhcpOptions, bootFiles, GUARD_LIMITS.allow];
    const ofVms = [
      MAX_REQUESTED_ADDRESSES_LENGTH,
      MAX_NETWORK_ELEMENTS,
      reportedAddressesRead(),
      MAX_GUEST_TEXT_LENGTH,
      MAX_NETWORK_DATA_LENGTH,
      MAX_SECRET_USERS,
      MAX_REPORTED_ADDRESSES,
      MAX_DHCP_OPTION_BYTES,
      MAX_NTP_SERVERS,
      MAX_ENTRIES,
      MAX_NAD_OPTION_SETS,
      MAX_APPLIED_COPY_LENGTH,
      MAX_VM_NETWORKS,
    ];
    expect(bounds).to.deep.equal([
      MAX_NAD_CONFIG_LENGTH,
      MAX_NAD_PLUGINS,
      MAX_SUBNETS_LENGTH,
      ...ofPools,
      DEFAULT_MAX_DERIVED_POOLS,
      MAX_READ_NADS,
      ...ofGuests,
      ...ofVms,
      MAX_MESSAGE_LENGTH,
      MAX_NETWORK_ELEMENTS,
      MAX_POD_RESOURCES,
      MAX_POD_CONSTRAINTS,
    ]);
  });
});
