import { type Address, formatAddress, readAddress, sameAddress } from '../../addressing/address/address.js';
import { MAX_INTERFACE } from '../../addressing/lease/lease-record.js';
import type { LeaseOwner } from '../../api/address-lease.js';
import { parseLeaseMac } from '../../api/mac-address.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { interfaceNameOf } from '../../api/networks/network-selection.js';
import { type NetworkStatus, type Pod, hasUid, isTerminal, networkStatuses, reportedIPsOf } from '../../api/pod.js';
import { readableSelectionsIn } from '../claim-users.js';
import { groupBy } from '../group-by.js';
import type { SourceNad } from './nads.js';

/** An interface that a pod reports. */
interface ActiveInterface {
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

function readReportedInterface(status: NetworkStatus): ActiveInterface {
  const { name, interface: podInterface = '' } = status;
  const { mac: reportedMac } = status as { mac?: unknown };
  const mac = typeof reportedMac === 'string' ? parseLeaseMac(reportedMac) : undefined;
  return {
    nad: name,
    addresses: reportedIPsOf(status).flatMap((ip) => readAddress(ip) ?? []),
    ...(podInterface !== '' && podInterface.length <= MAX_INTERFACE && { interface: podInterface }),
    ...(mac !== undefined && { mac }),
  };
}

/** An address that a pod reports on the network of a NAD. */
export interface ReportedAddress {
  readonly pod: Pod;
  readonly nad: SourceNad;
  readonly address: Address;
}

/** The addresses that pods report. Tenants may write these reports, so only interfaces that the pods request count. */
export class ReportedAddresses {
  readonly unrequested: ReportedAddress[] = [];
  /** By NAD and address. */
  readonly #byPlace: ReadonlyMap<string, ReportedAddress[]>;

  constructor({ nads, pods }: { nads: readonly SourceNad[]; pods: ActivePods }) {
    const byKey = new Map(nads.map((nad) => [nad.key, nad]));
    const requested: ReportedAddress[] = [];
    for (const pod of pods.all()) {
      for (const attachment of pods.reportedInterfaces(pod)) {
        const nad = byKey.get(attachment.nad);
        if (nad === undefined) continue;
        const list = requestsInterface(pod, attachment) ? requested : this.unrequested;
        list.push(...attachment.addresses.map((address) => ({ pod, nad, address })));
      }
    }
    this.#byPlace = groupBy(requested, ({ nad, address }) => `${nad.key} ${formatAddress(address)}`);
  }

  *all(): Iterable<ReportedAddress> {
    for (const shown of this.#byPlace.values()) yield* shown;
  }

  podsWith(address: Address, nads: readonly SourceNad[]): Pod[] {
    const text = formatAddress(address);
    const shown = nads.flatMap(({ key }) => this.#byPlace.get(`${key} ${text}`) ?? []);
    return [...new Set(shown.map(({ pod }) => pod))];
  }
}

function requestsInterface(pod: Pod, attachment: ActiveInterface): boolean {
  return readableSelectionsIn(pod).some(
    (selection) =>
      `${selection.nad.namespace}/${selection.nad.name}` === attachment.nad &&
      interfaceNameOf(selection) === attachment.interface,
  );
}
