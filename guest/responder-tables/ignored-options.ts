import { EventReason } from '../../api/event-reasons.js';
import type { EventRecorder } from '../../kube/events.js';
import { type RunningGuest, tableGuestOf } from './table.js';

/** Tells owners once what responders do not give their guests. */
export class IgnoredOptions {
  readonly #events: Pick<EventRecorder, 'event'>;
  /** What owners know already: by the pool, then by the UID of the claim. */
  readonly #told = new Map<string, ReadonlyMap<string | undefined, string>>();

  constructor(events: Pick<EventRecorder, 'event'>) {
    this.#events = events;
  }

  /** Call it with the guests of each table. */
  found(pool: string, guests: readonly RunningGuest[]): void {
    const told = new Map<string | undefined, string>();
    for (const guest of guests) {
      const { ignored = [] } = guest.dhcp ?? {};
      if (ignored.length === 0) continue;
      const { uid } = guest.claim.metadata;
      const { claim, subject } = tableGuestOf(guest);
      const message =
        `Responders do not give the guest of IPAMClaim ${claim} all dhcpOptions of its VM: ${ignored.join('; ')}. ` +
        'Correct them in the spec of the VM, and restart it';
      if (this.#told.get(pool)?.get(uid) !== message)
        this.#events.event(subject, 'Warning', EventReason.DHCPOptionsIgnored, message);
      told.set(uid, message);
    }
    this.#told.set(pool, told);
  }
}
