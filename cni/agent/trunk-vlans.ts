import { asRecord } from '../../api/json.js';
import { type Range, RangeSet } from '../../addressing/address/ranges.js';

const NO_VLAN = 0n;
const LAST_VLAN = 4094n;
/** The VLAN of untagged frames that the plugin gives to the port of a trunk without `vlan`. */
const DEFAULT_VLAN = { first: 1n, last: 1n };

/**
 * Returns the VLANs of which the plugin `bridge` passes tagged frames. A tag of VLAN 0 or of the port's own VLAN would lead into the untagged network,
 * past the rules. Entries that the plugin refuses are left out.
 */
export function trunkVlans({ vlanTrunk, vlan }: Readonly<Record<string, unknown>>): readonly Range[] {
  const entries: readonly unknown[] = Array.isArray(vlanTrunk) ? vlanTrunk : [];
  const listed = entries.flatMap((entry) => {
    const { id, minID, maxID } = asRecord(entry);
    return [rangeOf(id, id), rangeOf(minID, maxID)].filter((each) => each !== undefined);
  });
  const native = rangeOf(vlan, vlan) ?? DEFAULT_VLAN;
  return RangeSet.of(listed).subtract(RangeSet.of([native])).ranges;
}

function rangeOf(from: unknown, to: unknown): Range | undefined {
  if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return undefined;
  const [first, last] = [BigInt(from as number), BigInt(to as number)];
  return first > NO_VLAN && first <= last && last <= LAST_VLAN ? { first, last } : undefined;
}
