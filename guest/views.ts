import { createPoolDirectory } from '../addressing/directory/create-directory.js';
import { createPersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import { ADDRESS_POOL_WATCH, NAD_WATCH, NAMESPACE_WATCH } from '../cluster/watch-specs.js';
import type { GuestConfig } from '../process/guest-config.js';
import type { ProcessContext } from '../process/context.js';
import { GUEST_CLAIMS, GUEST_VMIS, GUEST_VMS, LOCKED_LEASES } from './watch-specs.js';

/** All state of the process, rebuilt from the API server at every start. */
export type GuestViews = ReturnType<typeof createGuestViews>;

export function createGuestViews(
  { informers, clock }: Pick<ProcessContext, 'informers' | 'clock'>,
  config: GuestConfig,
) {
  const watched = {
    vms: informers.get(GUEST_VMS),
    vmis: informers.get(GUEST_VMIS),
    claims: informers.get(GUEST_CLAIMS),
    networks: informers.get(NAD_WATCH),
    namespaces: informers.get(NAMESPACE_WATCH),
    pools: informers.get(ADDRESS_POOL_WATCH),
    lockedLeases: informers.get(LOCKED_LEASES),
  };
  const directory = createPoolDirectory(watched, clock);
  const handlers: (() => void)[] = [];
  const gate = createPersistentIPsGate(config, informers, () => {
    for (const handler of handlers) handler();
  });
  return { watched, directory, gate, onGateChange: (handler: () => void) => handlers.push(handler) };
}
