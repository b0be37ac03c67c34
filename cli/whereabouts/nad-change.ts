import { HOLDFAST_IPAM } from '../../api/ipam-delegation.js';
import { DEFAULT_GLOBAL_NAMESPACES } from '../../api/names.js';
import type { SourceNad } from './nads.js';
import type { NadChange } from './plan-types.js';

/**
 * Plans the change of a NAD: the type of its IPAM, the address space if it shares one with other networks, and the other namespaces that use it.
 * All other keys stay.
 * @param space the address space; the NAD names it only if it is not the default
 * @param users namespaces whose pods use NADs of its namespace and network, which a derived pool does not serve by default
 */
export function planNadChange(nad: SourceNad, space: string, users: ReadonlySet<string>): NadChange {
  const { key, network, config, place, cniConfig } = nad;
  const others = [...users].filter((namespace) => namespace !== nad.namespace).sort();
  const areServed = config.namespaces !== undefined || DEFAULT_GLOBAL_NAMESPACES.includes(nad.namespace);
  const named = {
    ...((config.addressSpace ?? network) !== space && { addressSpace: space }),
    ...(others.length > 0 && !areServed && { namespaces: others }),
  };
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
    config: JSON.stringify(replaceObject(cniConfig, place.ipam, ipam)),
  };
}

function linesOf(fields: object): string[] {
  return Object.entries(fields).map(([field, value]) => `${JSON.stringify(field)}: ${JSON.stringify(value)}`);
}

/** Returns the config with one object replaced by another. */
function replaceObject(value: unknown, before: object, after: object): unknown {
  if (value === before) return after;
  if (Array.isArray(value)) return value.map((element) => replaceObject(element, before, after));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, replaceObject(each, before, after)]));
}
