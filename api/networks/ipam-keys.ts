/** Fields of a pool's spec that a NAD may set, besides its subnets. */
export const POOL_FIELDS = [
  'addressSpace',
  'cooldownSeconds',
  'stickyMAC',
  'blockSize',
  'nodeSelector',
  'publishCapacity',
  'guard',
] as const;

/** A key of the `ipam` object that is not a field of a pool: the CRD describes those. docs/reference/ipam-keys.md shows both. */
interface IpamKey {
  readonly type: string;
  readonly meaning: string;
}

/** Keys of the object itself. */
export const OBJECT_KEYS = {
  type: { type: 'string, required', meaning: 'holdfast' },
  namespaces: {
    type: 'string[]',
    meaning:
      'The namespaces besides the own one whose VMs and pods may use this NAD, or "*" for all. Default: none, and in default and the namespaces of --global-namespaces all.',
  },
} as const satisfies Record<string, IpamKey>;

export const SUBNET_KEYS = ['cidr', 'ranges', 'exclude', 'gateway', 'reserved', 'draining'] as const;
export const STICKY_KEYS = ['ttl', 'retain'] as const;
export const BLOCK_SIZE_KEYS = ['ipv4', 'ipv6'] as const;
export const GUARD_KEYS = ['mode', 'migrationHold'] as const;

/** Keys of whereabouts that each element of `ipRanges` may have, and the object itself. They exclude `subnets`. */
export const RANGE_KEYS = {
  range: {
    type: 'string',
    meaning:
      'A subnet such as 10.0.0.0/24, in which host bits are ignored, or addresses of it: 10.0.0.10-10.0.0.20/24.',
  },
  range_start: { type: 'string', meaning: 'The first address of range that is allocated.' },
  range_end: { type: 'string', meaning: 'The last address of range that is allocated.' },
  exclude: { type: 'string[]', meaning: 'CIDRs and addresses that are never allocated.' },
} as const satisfies Record<string, IpamKey>;

/** Keys of whereabouts that only the object itself may have. */
export const WHEREABOUTS_KEYS = {
  ipRanges: { type: 'object[]', meaning: 'More ranges, each with the keys range, range_start, range_end and exclude.' },
  gateway: { type: 'string', meaning: 'The gateway of the range whose subnet contains it.' },
  network_name: { type: 'string', meaning: 'The same as addressSpace, which has precedence.' },
} as const satisfies Record<string, IpamKey>;

/** Keys on which pools do not depend: agents pass them to the pod. */
export const PASSED_KEYS = {
  routes: {
    type: 'object[]',
    meaning:
      'Routes of the pod, in the format of CNI: dst and gw. Those of a family of which it has no address are left out.',
  },
  dns: { type: 'object', meaning: 'DNS settings of the pod, in the format of CNI.' },
} as const satisfies Record<string, IpamKey>;

/**
 * Other keys of whereabouts (pkg/types, IPAMConfig) and of CNI. Keys for storage and locks have no effect, so that only the type changes when
 * a NAD moves to Holdfast.
 */
export const IGNORED_KEYS: readonly string[] = [
  ...['name', 'addresses', 'datastore', 'kubernetes', 'configuration_path', 'log_file', 'log_level'],
  ...['etcd_host', 'etcd_username', 'etcd_password', 'etcd_key_file', 'etcd_cert_file', 'etcd_ca_cert_file'],
  ...['leader_lease_duration', 'leader_renew_deadline', 'leader_retry_period', 'reconciler_cron_expression'],
  ...['enable_overlapping_ranges', 'sleep_for_race', 'node_slice_size', 'optimistic_ipam', 'exclude_gateway'],
  ...['enable_l3', 'cniVersion'],
];
