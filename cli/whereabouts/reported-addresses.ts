import { interfaceNameOf } from '../../api/network-selection.js';
import type { Pod } from '../../api/pod.js';
import { type Address, formatAddress } from '../../addressing/address/address.js';
import { type ActiveInterface, type ActivePods, readableSelectionsIn } from './active-pods.js';
import type { SourceNad } from './nads.js';

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
  readonly #byPlace = new Map<string, ReportedAddress[]>();

  constructor({ nads, pods }: { nads: readonly SourceNad[]; pods: ActivePods }) {
    const byKey = new Map(nads.map((nad) => [nad.key, nad]));
    for (const pod of pods.all()) {
      for (const attachment of pods.reportedInterfaces(pod)) {
        const nad = byKey.get(attachment.nad);
        if (nad === undefined) continue;
        const asks = requestsInterface(pod, attachment);
        for (const address of attachment.addresses) {
          if (asks) this.#add({ pod, nad, address });
          else this.unrequested.push({ pod, nad, address });
        }
      }
    }
  }

  *all(): Iterable<ReportedAddress> {
    for (const shown of this.#byPlace.values()) yield* shown;
  }

  podsWith(address: Address, nads: readonly SourceNad[]): Pod[] {
    const text = formatAddress(address);
    const shown = nads.flatMap(({ key }) => this.#byPlace.get(`${key} ${text}`) ?? []);
    return [...new Set(shown.map(({ pod }) => pod))];
  }

  #add(shown: ReportedAddress): void {
    const key = `${shown.nad.key} ${formatAddress(shown.address)}`;
    const there = this.#byPlace.get(key);
    if (there === undefined) this.#byPlace.set(key, [shown]);
    else there.push(shown);
  }
}

function requestsInterface(pod: Pod, attachment: ActiveInterface): boolean {
  return readableSelectionsIn(pod).some(
    (selection) =>
      `${selection.nad.namespace}/${selection.nad.name}` === attachment.nad &&
      interfaceNameOf(selection) === attachment.interface,
  );
}
