import type { EventReason } from '../../api/event-reasons.js';
import type { AddressRequest } from '../../api/requested-addresses.js';
import type { GuestMacs } from './guest-mac.js';

/** The claim that an interface should have. */
export interface DesiredClaim extends GuestMacs {
  /** The network's name in the VM's spec. */
  vmNetwork: string;
  /** The CNI network's name. */
  network: string;
  /** `namespace/name` of the NAD. */
  nad: string;
  podInterface: string;
  /** Absent if the interface requests no addresses. `late`: the claim is in use, so its request does not change. */
  request?: Exclude<AddressRequest, { kind: 'none' }> | { kind: 'late' };
  /** As in the spec; lower case, with colons. */
  mac?: string;
  /** When the interface was observed, in milliseconds since the epoch, by a clock that is not set back. */
  observedAt: number;
}

/** An invalid NAD, request or MAC address. It affects only its own interface. */
export interface InterfaceProblem {
  reason: EventReason;
  message: string;
}
