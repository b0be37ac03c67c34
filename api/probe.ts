import { parseMac } from './mac-address.js';
import type { ObjectMeta } from './meta.js';
import { PROBE_ANNOTATION } from './names.js';

/**
 * The state of the probe of a new lease's address, as {@link PROBE_ANNOTATION} says it.
 * - `requested`: ipam waits for a responder
 * - `free`: nobody answered
 * - `self`: only the guest for which the address is meant answered
 * - `skipped`: ipam did not wait any longer, and the claim may show the address
 * - `taken`: a host with this MAC address answered; lower case, with colons
 */
export type ProbeState = 'requested' | 'free' | 'self' | 'skipped' | { readonly taken: string };

const TAKEN = 'taken ';

/** Returns the value of the annotation. */
export function formatProbe(state: ProbeState): string {
  return typeof state === 'string' ? state : `${TAKEN}${state.taken}`;
}

/** Returns the state of the lease's probe; undefined if it has none. A value that cannot be read answers nothing. */
export function readProbe({ annotations }: Pick<ObjectMeta, 'annotations'>): ProbeState | undefined {
  const text = annotations?.[PROBE_ANNOTATION];
  if (text === undefined || text === 'free' || text === 'self' || text === 'skipped') return text;
  const mac = text.startsWith(TAKEN) ? parseMac(text.slice(TAKEN.length)) : undefined;
  return mac === undefined ? 'requested' : { taken: mac };
}
