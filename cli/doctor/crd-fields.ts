// `npm run reference` writes this file from manifests/crds.
/** The fields of Holdfast's kinds that this version uses: the names of those in each object below `spec` and `status`. */
export const CRD_FIELDS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'addressblocks.ipam.holdfast.dev': { spec: 'pool cidr node', status: 'release reason' },
  'addressleases.ipam.holdfast.dev': {
    spec: 'address addressSpace pool owner node containerID interface mac reserved releasedAt quarantine networkData',
    'spec.owner': 'kind namespace name uid workloadUID',
    'spec.quarantine': 'since until mac',
    'spec.networkData': 'namespace secret owner',
    'spec.networkData.owner': 'kind name uid',
  },
  'addresspools.ipam.holdfast.dev': {
    spec: 'network addressSpace subnets cooldownSeconds stickyMAC blockSize nodeSelector publishCapacity publishMetrics namespaces guard guest',
    'spec.subnets': 'cidr ranges exclude gateway reserved draining',
    'spec.stickyMAC': 'ttl retain',
    'spec.blockSize': 'ipv4 ipv6',
    'spec.guard': 'mode migrationHold allow',
    'spec.guard.allow': 'addresses macs onRequest claims',
    'spec.guest': 'attachment dhcp probe networkData dns ntp routes mtu',
    'spec.guest.dhcp': 'renewSeconds rebindSeconds leaseSeconds options optionsV6 boot',
    'spec.guest.dhcp.options': 'code type value',
    'spec.guest.dhcp.optionsV6': 'code type value',
    'spec.guest.dhcp.boot': 'ipxe architectures servers file parameters',
    'spec.guest.networkData': 'default',
    'spec.guest.dns': 'nameservers search',
    'spec.guest.routes': 'destination gateway',
    status:
      'observedGeneration capacity leased heldByStopped cooling free reserved quarantined draining ipv4 ipv6 blocks conditions',
    'status.ipv4': 'capacity leased cooling free reserved quarantined',
    'status.ipv6': 'capacity leased cooling free reserved quarantined',
    'status.blocks': 'total full lent current',
  },
};

/** The kind of claims, which Holdfast ships for clusters that lack it. */
export const CLAIM_CRD = 'ipamclaims.k8s.cni.cncf.io';
