/** The fields of Holdfast's kinds that this version uses, below `spec` and `status`. A test compares them with `manifests/crds`. */
export const CRD_FIELDS: Readonly<Record<string, readonly string[]>> = {
  'addressblocks.ipam.holdfast.dev': ['spec.pool', 'spec.cidr', 'spec.node', 'status.release', 'status.reason'],
  'addressleases.ipam.holdfast.dev': [
    ...[
      'spec.address',
      'spec.addressSpace',
      'spec.pool',
      'spec.node',
      'spec.containerID',
      'spec.interface',
      'spec.mac',
    ],
    ...['spec.reserved', 'spec.releasedAt', 'spec.owner', 'spec.owner.kind', 'spec.owner.namespace', 'spec.owner.name'],
    ...['spec.owner.uid', 'spec.owner.workloadUID', 'spec.quarantine', 'spec.quarantine.mac'],
    ...['spec.quarantine.since', 'spec.quarantine.until'],
    ...['spec.networkData', 'spec.networkData.namespace', 'spec.networkData.secret', 'spec.networkData.owner'],
    ...['spec.networkData.owner.kind', 'spec.networkData.owner.name', 'spec.networkData.owner.uid'],
  ],
  'addresspools.ipam.holdfast.dev': [
    ...['spec.network', 'spec.addressSpace', 'spec.subnets', 'spec.subnets.cidr', 'spec.subnets.ranges'],
    ...['spec.subnets.exclude', 'spec.subnets.gateway', 'spec.subnets.reserved', 'spec.subnets.draining'],
    ...['spec.cooldownSeconds', 'spec.stickyMAC', 'spec.stickyMAC.ttl', 'spec.stickyMAC.retain', 'spec.blockSize'],
    ...[
      'spec.blockSize.ipv4',
      'spec.blockSize.ipv6',
      'spec.nodeSelector',
      'spec.publishCapacity',
      'spec.publishMetrics',
      'spec.namespaces',
    ],
    'spec.guest',
    ...[
      'attachment',
      'mtu',
      'ntp',
      'networkData',
      'networkData.default',
      'probe',
      'routes',
      'routes.destination',
      'routes.gateway',
    ]
      .concat([
        'dhcp',
        'dhcp.leaseSeconds',
        'dhcp.rebindSeconds',
        'dhcp.renewSeconds',
        'dns',
        'dns.nameservers',
        'dns.search',
      ])
      .map((field) => `spec.guest.${field}`),
    ...['status.observedGeneration', 'status.capacity', 'status.leased', 'status.heldByStopped', 'status.cooling'],
    ...[
      'status.free',
      'status.reserved',
      'status.quarantined',
      'status.draining',
      'status.blocks',
      'status.blocks.total',
    ],
    ...['ipv4', 'ipv6'].flatMap((family) =>
      ['', '.capacity', '.leased', '.cooling', '.free', '.reserved', '.quarantined'].map(
        (field) => `status.${family}${field}`,
      ),
    ),
    ...['status.blocks.full', 'status.blocks.lent', 'status.blocks.current', 'status.conditions'],
  ],
};

/** The kind of claims, which Holdfast ships for clusters that lack it. */
export const CLAIM_CRD = 'ipamclaims.k8s.cni.cncf.io';
