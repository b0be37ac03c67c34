import type { AddressPool, AddressPoolSpec } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import { CLAIM_NAD } from '../../api/names.js';
import type { KubeObject } from '../../api/meta.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { Cache, type Indexes } from '../../kube/informers/cache.js';
import { type ParsedNad, transformNad } from '../../cluster/transforms.js';

/** Pools, NADs and claims for tests, in short form. */

/** The n-th day of 2026, as a time of creation. */
export function day(n: number): string {
  return new Date(Date.UTC(2026, 0, n)).toISOString().replace('.000', '');
}

export interface PoolGiven extends Partial<AddressPoolSpec> {
  cidr?: string;
  born?: number;
  deleting?: boolean;
  /** Makes it a derived one. */
  nadNamespace?: string;
}

/** An admin's pool of network blue. */
export function adminPool(name: string, given: PoolGiven = {}): AddressPool {
  const { cidr = '10.0.0.0/24', born = 1, deleting, nadNamespace, ...spec } = given;
  return {
    metadata: {
      name,
      uid: `${name}-uid`,
      resourceVersion: '1',
      creationTimestamp: day(born),
      ...(deleting && { deletionTimestamp: day(300) }),
      ...(nadNamespace !== undefined && { annotations: { 'ipam.holdfast.dev/nad-namespace': nadNamespace } }),
    },
    spec: { network: 'blue', subnets: [{ cidr }], ...spec },
  };
}

/** A NAD in its cached form. @param key `namespace/name` */
export function nad(key: string, config: unknown, born = 1): ParsedNad {
  return transformNad(nadDefinition(key, config, born));
}

/** A NAD in the form of the API server. @param key `namespace/name` */
export function nadDefinition(key: string, config: unknown, born = 1): NetworkAttachmentDefinition {
  const [namespace = '', name = ''] = key.split('/');
  return {
    metadata: { name, namespace, uid: `${key}-uid`, resourceVersion: '1', creationTimestamp: day(born) },
    spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
  };
}

/** The config of a bridge that leaves its addresses to Holdfast. */
export function holdfastConfig(ipam: object = {}, network = 'blue'): object {
  return { cniVersion: '1.0.0', name: network, type: 'bridge', ipam: { type: 'holdfast', ...ipam } };
}

/** A claim of network blue. @param key `namespace/name`; @param nad `namespace/name` that it was made for */
export function claimOf(key: string, nad?: string, network = 'blue'): IPAMClaim {
  const [namespace = '', name = ''] = key.split('/');
  return {
    metadata: { namespace, name, uid: `${key}-uid`, ...(nad !== undefined && { annotations: { [CLAIM_NAD]: nad } }) },
    spec: { network, interface: 'net1' },
  };
}

export function cacheOf<S extends KubeObject>(objects: readonly S[], indexes?: Indexes<S>): Cache<S> {
  const cache = new Cache<S>(indexes);
  for (const object of objects) cache.set(object);
  return cache;
}
