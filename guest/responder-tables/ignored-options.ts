import { EventReason } from '../../api/event-reasons.js';
import type { EventRecorder } from '../../kube/events.js';
import { type RunningGuest, tableGuestOf } from './table.js';

/** Tells owners once what responders do not give their guests. */
export class IgnoredOptions {
  readonly #events: Pick<EventRecorder, 'event'>;
  /** What owners know already: by the pool, then by the UID of the claim. No texts of its own, because tenants decide about their length. */
  readonly #told = new Map<string, ReadonlyMap<string | undefined, readonly string[]>>();

  constructor(events: Pick<EventRecorder, 'event'>) {
    this.#events = events;
  }

  /** Call it with the guests of each table. */
  found(pool: string, guests: readonly RunningGuest[]): void {
    const told = new Map<string | undefined, readonly string[]>();
    for (const guest of guests) {
      const { ignored = [] } = guest.dhcp ?? {};
      if (ignored.length === 0) continue;
      const { uid } = guest.claim.metadata;
      const known = this.#told.get(pool)?.get(uid);
      // the same list while the VMI stays the same
      if (known !== ignored && known?.join() !== ignored.join()) this.#tell(guest, ignored);
      told.set(uid, ignored);
    }
    this.#told.set(pool, told);
  }

  #tell(guest: RunningGuest, ignored: readonly string[]): void {
    const { claim, subject } = tableGuestOf(guest);
    const message =
      `Responders do not give the guest of IPAMClaim ${claim} all dhcpOptions of its VM: ${ignored.join('; ')}. ` +
      'Correct them in the spec of the VM, and restart it';
    this.#events.event(subject, 'Warning', EventReason.DHCPOptionsIgnored, message);
  }
}
