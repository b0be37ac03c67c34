import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachineInstance } from '../api/kubevirt.js';
import { workloadOfClaim } from '../cluster/watch-specs.js';
import type { Lister } from '../kube/cache.js';
import type { ObjectChange } from '../kube/informer.js';
import type { GuestListers } from './cached-view.js';
import { type Layer2Guests, layer2GuestsOf } from './layer2-guests.js';

interface RememberedCaches extends GuestListers {
  readonly vmis: Pick<Lister<VirtualMachineInstance>, 'get'>;
}

/** Sources of change events for the caches. An informer and a directory are such sources. */
export interface GuestChanges {
  readonly claims: { onChange(handler: (change: ObjectChange<IPAMClaim>) => void): void };
  readonly directory: { onChange(handler: () => void): void };
}

/**
 * Remembers the guests of each VMI until something changes that they depend on: the VMI, the claims of its owner, or pools and NADs. A change of
 * one VM then costs the same whatever the number of the others.
 */
export class RememberedGuests {
  readonly #caches: RememberedCaches;
  #known = new WeakMap<VirtualMachineInstance, Layer2Guests>();

  constructor(caches: RememberedCaches) {
    this.#caches = caches;
  }

  /** Subscribes to changes. Call it before other subscribers, so that they see the new state when they ask. */
  follow({ claims, directory }: GuestChanges): void {
    claims.onChange(({ object, before = object }) => {
      for (const key of [...workloadOfClaim(before), ...workloadOfClaim(object)]) {
        const vmi = this.#caches.vmis.get(key);
        if (vmi !== undefined) this.#known.delete(vmi);
      }
    });
    directory.onChange(() => {
      this.#known = new WeakMap();
    });
  }

  /** @param vmi as it is in the cache */
  of(vmi: VirtualMachineInstance): Layer2Guests {
    const known = this.#known.get(vmi);
    if (known !== undefined) return known;
    const found = layer2GuestsOf(vmi, this.#caches);
    this.#known.set(vmi, found);
    return found;
  }
}
