import { type Cidr, overlap } from '../../addressing/address/cidr.js';
import type { SourceNad } from './nads.js';

/**
 * The address space of each NAD, by its key. whereabouts keeps an address unique among all ranges of one `network_name`, and of none: NADs whose
 * ranges overlap there share an address space here, whatever their networks are called. One that names its address space has meant it, and one
 * that has moved has the one that it has.
 * @param nads oldest first: the oldest of those that share names the space
 */
export function addressSpaces(nads: readonly SourceNad[]): Map<string, string> {
  const spaces = new Map<string, string>();
  const left = new Set(nads);
  for (const nad of nads) {
    if (!left.has(nad)) continue;
    const sharing = nadsSharingWith(nad, left);
    const space = sharing.map(explicitSpaceOf).find((own) => own !== undefined) ?? nad.network;
    for (const each of sharing) {
      left.delete(each);
      spaces.set(each.key, explicitSpaceOf(each) ?? space);
    }
  }
  return spaces;
}

function explicitSpaceOf({ config, hasMoved, network }: SourceNad): string | undefined {
  return config.addressSpace ?? (hasMoved ? network : undefined);
}

/** All that share a range with it, or with one that does. */
function nadsSharingWith(nad: SourceNad, among: ReadonlySet<SourceNad>): SourceNad[] {
  const found = new Set([nad]);
  // a set goes on with what is added meanwhile
  for (const one of found) {
    for (const other of among) if (one.networkName === other.networkName && shareRange(one, other)) found.add(other);
  }
  // in the order of their age
  return [...among].filter((each) => found.has(each));
}

function shareRange(one: SourceNad, other: SourceNad): boolean {
  const others = cidrsOf(other);
  return cidrsOf(one).some((cidr) => others.some((each) => overlap(cidr, each)));
}

/** Of the ranges that it names. */
export function cidrsOf({ requestedSpec }: SourceNad): Cidr[] {
  return requestedSpec.kind === 'spec' ? requestedSpec.pool.subnets.map(({ cidr }) => cidr) : [];
}
