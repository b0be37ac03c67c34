import type { AddressRequest } from '../../api/requested-addresses.js';

/** An interface that shall have a claim. */
export interface DesiredClaim {
  /** The network's name in the VM's spec. */
  vmNetwork: string;
  /** The CNI network's name. */
  network: string;
  /** `namespace/name` of the NAD. */
  nad: string;
  podInterface: string;
  /** The addresses that it asks for, where it asks for any. */
  request?: Exclude<AddressRequest, { kind: 'none' }>;
  /** That the spec names: lower case, with colons. */
  mac?: string;
}
