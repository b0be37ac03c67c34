import { type Pod, isOfNad, networkStatuses, reportedIPsOf } from '../../../api/pod.js';

/** An interface of a pod, as Multus reports it. Users may write the report, so it is a hint, never a right to an address. */
export interface ReportedInterface {
  /** `namespace/name` of the NAD, or the name of the cluster's default network. */
  nad: string;
  /** The interface in the pod. */
  name?: string;
  /** Unparsed. */
  ips: readonly string[];
}

/** Addresses that are read per pod: Multus reports a few for each of at most 64 networks. */
const MAX_REPORTED_ADDRESSES = 256;
/** Stands for the addresses beyond the limit: a list with an unreadable entry proves nothing about any address. */
const TOO_MANY_ADDRESSES = 'more addresses than a pod has';

/** Returns the interfaces that Multus reports addresses for. */
export function reportedInterfacesOf(pod: Pod): readonly ReportedInterface[] {
  const found: ReportedInterface[] = [];
  let left = MAX_REPORTED_ADDRESSES;
  for (const status of networkStatuses(pod)) {
    const { name: nad, interface: name } = status;
    const ips = reportedIPsOf(status);
    if (ips.length === 0) continue;
    const read = ips.length > left ? [...ips.slice(0, left), TOO_MANY_ADDRESSES] : ips;
    found.push({ nad, ...(name !== undefined && { name }), ips: read });
    left -= ips.length;
    if (left < 0) break;
  }
  return found;
}

/** Returns the interfaces on NADs as a text, which takes a fifth of the memory of the objects. Few readers need it. Empty if there are none. */
export function packInterfaces(pod: Pod): string {
  const found = reportedInterfacesOf(pod).filter(({ nad }) => isOfNad({ name: nad }));
  return found.length === 0 ? '' : JSON.stringify(found);
}

/** @param packed by {@link packInterfaces} */
export function unpackInterfaces(packed: string | undefined): readonly ReportedInterface[] {
  return packed ? (JSON.parse(packed) as ReportedInterface[]) : [];
}

export function reportedAddressesOf(interfaces: readonly ReportedInterface[]): readonly string[] {
  return interfaces.flatMap(({ ips }) => ips);
}
