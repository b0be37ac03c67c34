import type { InterfaceState } from '../wire-events.js';
import type { Wire, WireLocation } from '../wire.js';
import { ATTACKS, type SegmentHost } from './attacks.js';
import { MarkedFrames } from './marked-frames.js';

/** Sends all attacks again and again, from every pod that has one of the interfaces at that time. */
export class AttackLoop {
  /** Pods and interfaces from which all attacks were sent at least once. */
  readonly attacked = new Set<string>();
  readonly #wire: Wire;
  readonly #interfaces: readonly string[];
  readonly #other: SegmentHost;
  readonly #sent = new Map<string, MarkedFrames>();
  /** The last one that had addresses, by interface: the target of a migration has none before the guest comes. */
  readonly #known = new Map<string, SegmentHost>();
  readonly #running: Promise<void>;
  #isStopped = false;

  /** @param other a neighbour that none of the attacks may reach */
  constructor(wire: Wire, interfaces: readonly string[], other: SegmentHost) {
    this.#wire = wire;
    this.#interfaces = interfaces;
    this.#other = other;
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  /** Returns the names of attacks that are among the received frames. */
  among(received: readonly Buffer[]): string[] {
    return [...new Set([...this.#sent.values()].flatMap((each) => each.among(received)))];
  }

  async #run(): Promise<void> {
    while (!this.#isStopped) {
      const places = Object.entries(await this.#wire.inventory());
      const ports = places.flatMap(([place, { interfaces }]) =>
        this.#interfaces.filter((name) => interfaces.includes(name)).map((name) => [place, name] as const),
      );
      for (const [place, name] of ports) await this.#attackFrom(place as WireLocation, name);
      if (ports.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  /** A pod or an interface may vanish meanwhile. */
  async #attackFrom(place: WireLocation, name: string): Promise<void> {
    try {
      const state = (await this.#wire.interfaces(place)).find((each) => each.name === name);
      const me = state && this.#hostOf(state);
      if (me === undefined) return;
      await this.#wire.sendFrames(place, name, this.#framesOf(me));
      this.attacked.add(portName(place, name));
    } catch {
      // `attacked` tells whether it ever succeeded
    }
  }

  #hostOf({ name, mac, addresses }: InterfaceState): SegmentHost | undefined {
    const own = addresses.filter(({ linkLocal }) => !linkLocal).map(({ address }) => address.replace(/\/.*/, ''));
    const [ipv4, ipv6] = [own.find((each) => !each.includes(':')), own.find((each) => each.includes(':'))];
    if (ipv4 !== undefined && ipv6 !== undefined) this.#known.set(name, { mac, ipv4, ipv6 });
    const known = this.#known.get(name);
    return known && { ...known, mac };
  }

  #framesOf(me: SegmentHost): readonly Buffer[] {
    const key = Object.values(me).join(' ');
    const marked = this.#sent.get(key) ?? new MarkedFrames(ATTACKS, me, this.#other);
    this.#sent.set(key, marked);
    return marked.frames;
  }
}

export function portName(place: string, interfaceName: string): string {
  return `${place} ${interfaceName}`;
}
