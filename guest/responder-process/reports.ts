import { EventReason } from '../../api/event-reasons.js';
import { poolEventSubject } from '../../cluster/event-subjects.js';
import type { Clock } from '../../kube/clock.js';
import type { EventRecorder, EventSubject } from '../../kube/events.js';
import type { WireObservation } from '../responder-tables/protocol.js';
import type { TablePool } from '../responder-tables/guest-table.js';
import type { FoundGuest, ReceivedTable } from './received-table.js';
import type { HelperSession } from './session.js';

/** Observations that wait to be reported; others are dropped. Every host of the network can cause them. */
const MAX_WAITING = 64;
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
  #waiting: WireObservation[] = [];

  constructor(deps: ReportsDeps) {
    this.#deps = deps;
    this.#routerAt = deps.clock.now();
  }

  observed(seen: WireObservation): void {
    if (seen.kind === 'router') this.#routerAt = this.#deps.clock.now();
    else if (this.#waiting.length < MAX_WAITING) this.#waiting.push(seen);
  }

  /** Call it now and then, one call after the other: each one that has something to report reads the table. */
  async report(table: ReceivedTable): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = [];
    const { pool } = table.header;
    const ofGuests = waiting.filter(({ kind }) => kind !== 'server');
    const guests = await table.guestsOf(new Set(ofGuests.map(({ address }) => address)));
    const declined = ofGuests.filter(({ kind }) => kind === 'declined').map(({ address }) => guests.get(address));
    const macs = await table.macsByOwner(new Set(declined.flatMap((guest) => guest?.entry.owner ?? [])));
    for (const seen of waiting) {
      const guest = guests.get(seen.address);
      if (seen.kind === 'server')
        this.#warn(poolEventSubject(pool), EventReason.ForeignDHCPServer, foreignServer(pool, seen));
      else if (seen.kind === 'conflict') this.#conflict(guest, seen, pool);
      else if (guest === undefined) continue;
      else if (seen.kind === 'declined') void this.#declined(guest, seen, macs.get(guest.entry.owner ?? '') ?? []);
      else if (seen.kind === 'overloaded')
        this.#warn(guest.subject, EventReason.GuestRequestsLimited, overloaded(guest, seen));
    }
  }

  #conflict(guest: FoundGuest | undefined, { mac, address }: WireObservation, pool: TablePool): void {
    const whose = guest === undefined ? 'the address of a responder' : `the address of ${nameOf(guest)}`;
    const message =
      `${mac} uses ${address}, ${whose}, on network ${pool.network}. Find the host with this MAC address, and give it another address ` +
      'or exclude the address from the pool';
    this.#warn(guest?.subject ?? poolEventSubject(pool), EventReason.AddressConflict, message);
  }

  /** A guest can send such a message without a reason, so the event says who has the address. The helper reports it once a minute. */
  async #declined(guest: FoundGuest, { mac, address }: WireObservation, ofOwner: readonly string[]): Promise<void> {
    // Linux answers on each interface for the addresses of all
    const own = [...new Set([mac, ...ofOwner])];
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

function overloaded(guest: FoundGuest, { mac }: WireObservation): string {
  return `The guest of ${nameOf(guest)} (${mac}) sends more DHCP requests than are answered: look at its DHCP client`;
}

function nameOf({ claim }: FoundGuest): string {
  return `IPAMClaim ${claim}`;
}
