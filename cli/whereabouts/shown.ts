import { interfaceOf } from '../../api/network-selection.js';
import type { Pod } from '../../api/pod.js';
import { type Address, formatAddress } from '../../ipam/core/address.js';
import { type Attachment, type LivePods, selectionsIn } from './attachments.js';
import type { MovingNad } from './nads.js';

/** An address that a pod says it has on the network of a NAD. */
export interface Shown {
  readonly pod: Pod;
  readonly nad: MovingNad;
  readonly address: Address;
}

/** What pods report. Their tenants may write the report, so it counts for interfaces alone that the pods ask for. */
export class ShownAddresses {
  readonly notAskedFor: Shown[] = [];
  /** By NAD and address. */
  readonly #byPlace = new Map<string, Shown[]>();

  constructor({ nads, pods }: { nads: readonly MovingNad[]; pods: LivePods }) {
    const byKey = new Map(nads.map((nad) => [nad.key, nad]));
    for (const pod of pods.all()) {
      for (const attachment of pods.attachments(pod)) {
        const nad = byKey.get(attachment.nad);
        if (nad === undefined) continue;
        const asks = asksFor(pod, attachment);
        for (const address of attachment.addresses) {
          if (asks) this.#add({ pod, nad, address });
          else this.notAskedFor.push({ pod, nad, address });
        }
      }
    }
  }

  *all(): Iterable<Shown> {
    for (const shown of this.#byPlace.values()) yield* shown;
  }

  podsWith(address: Address, nads: readonly MovingNad[]): Pod[] {
    const text = formatAddress(address);
    const shown = nads.flatMap(({ key }) => this.#byPlace.get(`${key} ${text}`) ?? []);
    return [...new Set(shown.map(({ pod }) => pod))];
  }

  #add(shown: Shown): void {
    const key = `${shown.nad.key} ${formatAddress(shown.address)}`;
    const there = this.#byPlace.get(key);
    if (there === undefined) this.#byPlace.set(key, [shown]);
    else there.push(shown);
  }
}

function asksFor(pod: Pod, attachment: Attachment): boolean {
  return selectionsIn(pod).some(
    (selection) =>
      `${selection.nad.namespace}/${selection.nad.name}` === attachment.nad &&
      interfaceOf(selection) === attachment.interface,
  );
}
