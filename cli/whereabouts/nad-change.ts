import { HOLDFAST_IPAM } from '../../api/ipam-delegation.js';
import type { MovingNad } from './nads.js';
import type { NadChange } from './plan-types.js';

/**
 * The NAD's move: its IPAM's type, and the address space where it shares one with other networks. All other keys stay as they are.
 * @param space the address space; the NAD has to name it where that is not the one that it means anyway
 */
export function changeOf({ key, network, config, place, cniConfig }: MovingNad, space: string): NadChange {
  const named = (config.addressSpace ?? network) === space ? {} : { addressSpace: space };
  const fields = Object.entries(place.ipam).flatMap(([field, value]): [string, unknown][] =>
    field === 'type' ? [[field, HOLDFAST_IPAM], ...Object.entries(named)] : [[field, value]],
  );
  const ipam = Object.fromEntries(fields);
  return {
    nad: key,
    network,
    space,
    path: place.path,
    removed: linesOf({ type: place.type }),
    added: linesOf({ type: ipam.type, ...named }),
    config: JSON.stringify(replaced(cniConfig, place.ipam, ipam)),
  };
}

function linesOf(fields: object): string[] {
  return Object.entries(fields).map(([field, value]) => `${JSON.stringify(field)}: ${JSON.stringify(value)}`);
}

/** The same config with one object in place of another one. */
function replaced(value: unknown, before: object, after: object): unknown {
  if (value === before) return after;
  if (Array.isArray(value)) return value.map((element) => replaced(element, before, after));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaced(each, before, after)]));
}
