import { EventReason } from '../../api/event-reasons.js';
import { poolEventSubject } from '../../cluster/event-subjects.js';
import type { Clock } from '../../kube/clock.js';
import type { EventRecorder, EventSubject } from '../../kube/events.js';
import type { WireObservation } from '../responder-tables/protocol.js';
import type { TablePool } from '../responder-tables/published-table.js';
import type { GuestTable, TableGuest } from '../responder-tables/guest-table.js';
import type { HelperSession } from './session.js';

/** Routers advertise themselves at least every 30 minutes (RFC 4861, section 6.2.1), and the helper asks for it more often. */
const ROUTER_SILENCE_MS = 30 * 60_000;

interface ReportsDeps {
  readonly events: Pick<EventRecorder, 'event'>;
  readonly clock: Pick<Clock, 'now'>;
  readonly session: Pick<HelperSession, 'probe'>;
}

/** Records events about what a responder sees on the network. It never acts on it: every guest could forge it. */
export class Reports {
  readonly #deps: ReportsDeps;
  /** When the last router was heard; before that, when the responder started. */
  #routerAt: number;

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
    this.#routerAt = deps.clock.now();
  }

  observed(seen: WireObservation, pool: TablePool, table: GuestTable): void {
    const { mac, address } = seen;
    const guest = table.guests.get(address);
    switch (seen.kind) {
      case 'router':
        this.#routerAt = this.#deps.clock.now();
        return;
      case 'server':
        this.#warn(poolEventSubject(pool), EventReason.ForeignDHCPServer, foreignServer(pool, seen));
        return;
      case 'conflict': {
        const whose = guest === undefined ? 'the address of a responder' : `the address of ${nameOf(guest)}`;
        const message =
          `${mac} uses ${address}, ${whose}, on network ${pool.network}. Find the host with this MAC address, and give it another address ` +
          'or exclude the address from the pool';
        this.#warn(guest?.subject ?? poolEventSubject(pool), EventReason.AddressConflict, message);
        return;
      }
      case 'declined':
        if (guest !== undefined) void this.#declined(guest, seen, table);
        return;
      case 'overloaded':
        if (guest !== undefined) this.#warn(guest.subject, EventReason.GuestRequestsLimited, overloaded(guest, seen));
    }
  }

  /** A guest can send such a message without a reason, so the event says who has the address. The helper reports it once a minute. */
  async #declined(guest: TableGuest, { mac, address }: WireObservation, table: GuestTable): Promise<void> {
    const own = macsOfOwner(mac, table);
    const macs = await this.#deps.session.probe(address, own);
    const others = macs?.filter((each) => !own.includes(each));
    const message = `The guest of ${nameOf(guest)} (${mac}) declined ${address}, ${whoHas(others)}. The address stays that of the guest`;
    this.#warn(guest.subject, EventReason.AddressDeclined, message);
  }

  /** Call it now and then. Guests would have IPv6 addresses and no default route. */
  checkRouter(pool: TablePool): void {
    if (!pool.hasIpv6Gateway || this.#deps.clock.now() - this.#routerAt < ROUTER_SILENCE_MS) return;
    const message =
      `AddressPool ${pool.name} has an IPv6 gateway, but no router has advertised itself on network ${pool.network} for ` +
      `${ROUTER_SILENCE_MS / 60_000} min. Guests get their IPv6 default route from it, or from cloud-init network data`;
    this.#warn(poolEventSubject(pool), EventReason.RouterAdvertisementMissing, message);
  }

  #warn(subject: EventSubject, reason: EventReason, message: string): void {
    this.#deps.events.event(subject, 'Warning', reason, message);
  }
}

function foreignServer({ name, network }: TablePool, { mac, address }: WireObservation): string {
  return (
    `Another DHCP server, ${address} with MAC address ${mac}, answers on network ${network}: guests of AddressPool ${name} may get addresses ` +
    'from it. Stop it, or remove spec.guest.dhcp from the pool'
  );
}

/** @param others the MAC addresses of other hosts that answered; undefined if nothing could be asked */
function whoHas(others: readonly string[] | undefined): string {
  if (others === undefined) return 'and no responder could find out which other host has it';
  const [mac] = others;
  if (mac === undefined) return 'but no other host answers for it';
  return `which the host with MAC address ${mac} has. Give that host another address`;
}

/** The MAC addresses of a VM on the segment: Linux answers on each of them for the addresses of all. */
function macsOfOwner(mac: string, { entries }: GuestTable): string[] {
  const owner = entries.get(mac)?.owner;
  const others = [...entries.values()].filter((each) => owner !== undefined && each.owner === owner);
  return [...new Set([mac, ...others.map((each) => each.mac)])];
}

function overloaded(guest: TableGuest, { mac }: WireObservation): string {
  return `The guest of ${nameOf(guest)} (${mac}) sends more DHCP requests than are answered: look at its DHCP client`;
}

function nameOf({ claim }: TableGuest): string {
  return `IPAMClaim ${claim}`;
}
