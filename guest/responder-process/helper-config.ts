import { shortHash } from '../../api/names.js';
import { type Address, formatAddress } from '../../addressing/address/address.js';
import { formatCidr } from '../../addressing/address/cidr.js';
import type { Pool } from '../../addressing/pool/pool.js';
import { type HelperConfig, PROTOCOL_VERSION } from './protocol.js';

/** DUID-UUID (RFC 6355). */
const DUID_UUID = '0004';
const UUID_DIGITS = 32;
const MAX_ADVERTISE_SECONDS = 1800;

/** A responder of the pool and the addresses that are leased to its claim. */
export interface Responder {
  readonly name: string;
  readonly addresses: readonly Address[];
}

/**
 * Returns the configuration of the packet helper of one responder; undefined if its pool does not let guests use DHCP. The DUID stays the same for
 * all pods of a name, so that guests can renew.
 */
export function helperConfig(
  pool: Pool,
  self: Responder,
  peers: readonly Responder[],
  guestInterface: string,
): HelperConfig | undefined {
  const { dhcp } = pool.guest ?? {};
  if (dhcp === undefined) return undefined;
  const { renewSeconds, rebindSeconds, leaseSeconds } = dhcp;
  return {
    v: PROTOCOL_VERSION,
    interface: guestInterface,
    server: { ipv4: ipv4Of(self) ?? null, duid: `${DUID_UUID}${shortHash(`${pool.uid}\n${self.name}`, UUID_DIGITS)}` },
    subnets: pool.subnets.map(({ cidr }) => ({ cidr: formatCidr(cidr) })),
    peers: peers.flatMap((peer) => ipv4Of(peer) ?? []),
    times: {
      renew: renewSeconds,
      rebind: rebindSeconds,
      lease: leaseSeconds,
      // as often as guests ask by DHCP, within the bounds of RFC 4861, section 6.2.1
      advertise: Math.min(renewSeconds, MAX_ADVERTISE_SECONDS),
    },
  };
}

function ipv4Of({ addresses }: Responder): string | undefined {
  const found = addresses.find(({ family }) => family === 4);
  return found && formatAddress(found);
}
