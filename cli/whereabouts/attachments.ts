import type { LeaseOwner } from '../../api/address-lease.js';
import { parseLeasedMac } from '../../api/mac-address.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { NetworkSelectionError, type NetworkSelection, selectionsOf } from '../../api/network-selection.js';
import { networkStatuses } from '../../api/network-status.js';
import { type Pod, hasUid, isTerminal } from '../../api/pod.js';
import { type Address, AddressError, parseAddress, sameAddress } from '../../ipam/core/address.js';
import { MAX_INTERFACE } from '../../ipam/core/lease-owner.js';

/** What a pod says of one of its interfaces. */
export interface Attachment {
  /** `namespace/name` of the NAD. */
  readonly nad: string;
  readonly addresses: readonly Address[];
  readonly interface?: string;
  /** Lower case, with colons. */
  readonly mac?: string;
}

/** The pods that may have addresses: those that have not ended, by `namespace/name`. Annotations are read once. */
export class LivePods {
  readonly #pods = new Map<string, Pod>();
  readonly #attachments = new WeakMap<Pod, readonly Attachment[]>();

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

  /** As Multus reports them; none where it has not, or where the report cannot be read. */
  attachments(pod: Pod): readonly Attachment[] {
    const known = this.#attachments.get(pod);
    if (known !== undefined) return known;
    const attachments = networkStatuses(pod).map(readAttachment);
    this.#attachments.set(pod, attachments);
    return attachments;
  }

  withAddress(pod: Pod, address: Address): Attachment | undefined {
    return this.attachments(pod).find(({ addresses }) => addresses.some((each) => sameAddress(each, address)));
  }
}

/** What a pod asks for; nothing where that cannot be read. */
export function selectionsIn(pod: Pod): NetworkSelection[] {
  try {
    return selectionsOf(pod);
  } catch (error) {
    if (error instanceof NetworkSelectionError) return [];
    throw error;
  }
}

function readAttachment(status: { name: string; interface?: string; ips?: unknown; mac?: unknown }): Attachment {
  const { name, interface: podInterface = '', ips } = status;
  const mac = typeof status.mac === 'string' ? parseLeasedMac(status.mac) : undefined;
  return {
    nad: name,
    addresses: Array.isArray(ips) ? ips.flatMap((text) => readAddress(text) ?? []) : [],
    ...(podInterface !== '' && podInterface.length <= MAX_INTERFACE && { interface: podInterface }),
    ...(mac !== undefined && { mac }),
  };
}

function readAddress(text: unknown): Address | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return parseAddress(text.replace(/\/\d+$/, ''));
  } catch (error) {
    if (error instanceof AddressError) return undefined;
    throw error;
  }
}
