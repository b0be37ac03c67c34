import { createPoolDirectory } from '../addressing/directory/create-directory.js';
import { createPersistentIPsGate } from '../cluster/persistent-ips-gate.js';
import { ADDRESS_POOL_WATCH, NAD_WATCH, NAMESPACE_WATCH } from '../cluster/watch-specs.js';
import type { Sync } from '../kube/controller-loop.js';
import type { ProcessContext } from '../process/context.js';
import { type GuestConfig, responderStalenessMs } from '../process/config/guest-config.js';
import { responderSetName } from '../api/responders.js';
import { RememberedGuests } from './layer2-guests.js';
import type { GuestCaches } from './running-guests.js';
import { CLAIM_LEASES, GUEST_CLAIMS, GUEST_VMIS, GUEST_VMS, LOCKED_LEASES } from './watch-specs.js';

/** Watches end so often within the time for which a table may be used: each end shows that nothing was missed until the watch began. */
const WATCHES_PER_STALENESS = 10;

/** All state of the process, rebuilt from the API server at every start. */
export type GuestViews = ReturnType<typeof createGuestViews>;

export function createGuestViews(
  { informers, clock }: Pick<ProcessContext, 'informers' | 'clock'>,
  config: GuestConfig,
) {
  const handlers: (() => void)[] = [];
  const gate = createPersistentIPsGate(config, informers, () => {
    for (const handler of handlers) handler();
  });
  // tables of responders are as old as the oldest of these
  const watchSeconds = Math.floor(responderStalenessMs(config) / 1000 / WATCHES_PER_STALENESS);
  const watched = {
    vms: informers.get(GUEST_VMS),
    vmis: informers.get({ ...GUEST_VMIS, watchSeconds }),
    claims: informers.get({ ...GUEST_CLAIMS, watchSeconds }),
    networks: informers.get({ ...NAD_WATCH, watchSeconds }),
    // they say which VMs will get claims
    namespaces: gate.informer(NAMESPACE_WATCH),
    pools: informers.get({ ...GUEST_POOLS, watchSeconds }),
    claimLeases: informers.get({ ...CLAIM_LEASES, watchSeconds }),
    lockedLeases: informers.get(LOCKED_LEASES),
  };
  const directory = createPoolDirectory(watched, clock);
  const { claims, vmis, networks } = watched;
  const remembered = new RememberedGuests({
    claims: claims.cache,
    vmis: vmis.cache,
    networks: networks.cache,
    directory,
  });
  remembered.follow({ claims, networks, directory });
  return { watched, directory, remembered, gate, onGateChange: (handler: () => void) => handlers.push(handler) };
}

/** The caches in which running guests are found. */
export function guestCachesOf({ watched, directory, remembered }: GuestViews): GuestCaches {
  const { claims, vmis, networks } = watched;
  return { claims: claims.cache, vmis: vmis.cache, networks: networks.cache, directory, remembered };
}

/** The pools by the name of the StatefulSet of their responders. */
export const BY_RESPONDER_SET = 'responder-set';
const GUEST_POOLS: typeof ADDRESS_POOL_WATCH = {
  ...ADDRESS_POOL_WATCH,
  indexes: {
    ...ADDRESS_POOL_WATCH.indexes,
    [BY_RESPONDER_SET]: ({ metadata: { uid = '' } }) => [responderSetName({ uid })],
  },
};

/** One kind of work of this process, with a queue of its own while the process leads. */
export interface Reconciler {
  /** For metrics and logs. */
  readonly name: string;
  /** How many keys are synced at the same time. */
  readonly workers: number;
  /** Registers the handlers that enqueue keys. Called once. */
  listen(add: (keys: Iterable<string>) => void): void;
  /** Starts a term of leadership: nothing of an earlier term is remembered. */
  createSync(): Sync;
  /** The keys to sync at the beginning of a term. A key may come several times. */
  allKeys(): Iterable<string>;
  /** Called when the term has ended and nothing is synced any more. */
  end?(): void;
}
