import type { LeaseOwner } from '../../api/address-lease.js';
import { parseLeaseMac } from '../../api/mac-address.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { NetworkSelectionError, type NetworkSelection, networkSelectionsOf } from '../../api/network-selection.js';
import { type NetworkStatus, type Pod, hasUid, isTerminal, networkStatuses, reportedIPsOf } from '../../api/pod.js';
import { type Address, AddressError, parseAddress, sameAddress } from '../../addressing/address/address.js';
import { MAX_INTERFACE } from '../../addressing/lease/lease-record.js';

/** An interface that a pod reports. */
export interface ActiveInterface {
  /** `namespace/name` of the NAD. */
  readonly nad: string;
  readonly addresses: readonly Address[];
  readonly interface?: string;
  /** Lower case, with colons. */
  readonly mac?: string;
}

/** The non-terminal pods, which may have addresses, by `namespace/name`. Each annotation is parsed once. */
export class ActivePods {
  readonly #pods = new Map<string, Pod>();
  readonly #attachments = new WeakMap<Pod, readonly ActiveInterface[]>();

  constructor(pods: readonly Pod[]) {
    for (const pod of pods) {
      if (isTerminal(pod) || !pod.metadata.uid) continue;
      this.#pods.set(objectKey(pod), pod);
    }
  }

  get(key: string): Pod | undefined {
    return this.#pods.get(key);
  }

  has({ namespace, name, uid }: LeaseOwner): boolean {
    const pod = this.get(joinKey(namespace, name));
    return pod !== undefined && hasUid(pod, uid);
  }

  all(): Iterable<Pod> {
    return this.#pods.values();
  }

  /** The interfaces that Multus reports; none without a valid report. */
  reportedInterfaces(pod: Pod): readonly ActiveInterface[] {
    const known = this.#attachments.get(pod);
    if (known !== undefined) return known;
    const attachments = networkStatuses(pod).map(readReportedInterface);
    this.#attachments.set(pod, attachments);
    return attachments;
  }

  interfaceWithAddress(pod: Pod, address: Address): ActiveInterface | undefined {
    return this.reportedInterfaces(pod).find(({ addresses }) => addresses.some((each) => sameAddress(each, address)));
  }
}

/** Returns the network selections of a pod; none if its annotation is invalid. */
export function readableSelectionsIn(pod: Pod): NetworkSelection[] {
  try {
    return networkSelectionsOf(pod);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return [];
    throw error;
  }
}

function readReportedInterface(status: NetworkStatus): ActiveInterface {
  const { name, interface: podInterface = '' } = status;
  const { mac: reportedMac } = status as { mac?: unknown };
  const mac = typeof reportedMac === 'string' ? parseLeaseMac(reportedMac) : undefined;
  return {
    nad: name,
    addresses: reportedIPsOf(status).flatMap((ip) => parseReportedAddress(ip) ?? []),
    ...(podInterface !== '' && podInterface.length <= MAX_INTERFACE && { interface: podInterface }),
    ...(mac !== undefined && { mac }),
  };
}

function parseReportedAddress(text: string): Address | undefined {
  try {
    return parseAddress(text.replace(/\/\d+$/, ''));
  } catch (error) {
    if (error instanceof AddressError) return undefined;
    throw error;
  }
}
