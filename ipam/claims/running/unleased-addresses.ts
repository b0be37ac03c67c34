import type { IPAMClaim } from '../../../api/ipam-claim.js';
import { isBeingDeleted, joinKey, objectKey } from '../../../api/meta.js';
import { EventReason } from '../../../api/event-reasons.js';
import { KUBEVIRT_API_VERSION, VIRTUAL_MACHINE_INSTANCE_KIND } from '../../../api/names.js';
import { claimEventSubjects } from '../../../cluster/event-subjects.js';
import { BY_WORKLOAD } from '../../../cluster/watch-specs.js';
import type { ParsedNad } from '../../../cluster/transforms.js';
import type { Cache } from '../../../kube/informers/cache.js';
import type { Clock } from '../../../kube/clock.js';
import type { EventRecorder, EventSubject } from '../../../kube/events.js';
import type { Logger } from '../../../kube/log.js';
import { type LastingProblem, LastingReports } from '../../../process/lasting-reports.js';
import { type Address, formatAddress } from '../../../addressing/address/address.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { stateOf } from '../../../addressing/lease/lease.js';
import { collectIntervalMs } from '../../../addressing/lease/lease-times.js';
import { subnetOf } from '../../../addressing/pool/pool.js';
import type { PoolDirectory } from '../../../addressing/directory/directory.js';
import type { LeaseBook } from '../../leases/lease-book.js';
import { parseAddressList } from '../shown/claim-addresses.js';
import type { ClaimPod } from './claim-pods.js';
import { type ReportedInterface, unpackInterfaces } from './reported-interfaces.js';

interface UnleasedAddressDeps {
  readonly pods: Pick<Cache<ClaimPod>, 'list'>;
  /** Indexed by workload. */
  readonly claims: Pick<Cache<IPAMClaim>, 'byIndex'>;
  readonly networks: Pick<Cache<ParsedNad>, 'get'>;
  readonly directory: Pick<PoolDirectory, 'resolveUser'>;
  readonly book: Pick<LeaseBook, 'get'>;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly config: { readonly collectAfterMs: number };
  /** Called with the number of such addresses. */
  readonly count: (addresses: number) => void;
}

type Launcher = ClaimPod & { readonly vmi: NonNullable<ClaimPod['vmi']> };

/**
 * Creates the reports of running VMs with addresses of a pool that are not leased to them, as after etcd was restored from a backup. Another workload may
 * have the same address, or get it. Only the VM without the lease is told, because users can write what Multus reports of their own pods.
 */
export function reportUnleasedAddresses(deps: UnleasedAddressDeps): LastingReports<ClaimPod> {
  const { pods, clock, log, config, count } = deps;
  return new LastingReports({
    // a cache may lag, and a lease may change its owner
    ...{ clock, count, afterMs: config.collectAfterMs, pauseMs: collectIntervalMs(config.collectAfterMs) },
    objects: () => pods.list(),
    problemsOf: (pod) => {
      if (!isRunningLauncher(pod)) return [];
      try {
        return unpackInterfaces(pod.interfaces).flatMap((reported) => unleasedOf(pod, reported, deps));
      } catch (error) {
        log.error({ pod: objectKey(pod), err: error }, 'cannot check whether its addresses are leased');
        return [];
      }
    },
  });
}

function unleasedOf(launcher: Launcher, { nad, ips }: ReportedInterface, deps: UnleasedAddressDeps): LastingProblem[] {
  const { networks, directory, book } = deps;
  const { namespace = '', name, uid = '' } = launcher.metadata;
  const parsed = networks.get(nad);
  if (parsed?.delegation.kind !== 'holdfast' || !parsed.config.ok) return [];
  // whether it serves the namespace or not: the launcher has the address
  const user = { namespace, network: parsed.config.network.name, nad, keepsPool: true };
  const resolution = directory.resolveUser(user);
  if (resolution.kind !== 'served') return [];
  const { pool } = resolution;
  return readableAddresses(ips)
    .filter((address) => subnetOf(pool, address) !== undefined)
    .flatMap((address) => {
      const lease = book.get(leaseName(pool.addressSpace, address));
      const owner = lease !== undefined && stateOf(lease) === 'held' ? lease.owner : undefined;
      if (owner !== undefined && ownersOf(launcher, deps).has(owner.uid)) return [];
      const danger = owner === undefined ? 'not leased: another workload may get it' : 'leased to another workload';
      const message =
        `Launcher ${name} has address ${formatAddress(address)} of AddressPool ${pool.name}, which is ${danger}. ` +
        'Restart the VM: it then gets the addresses of its claim';
      const key = `${uid}/${pool.addressSpace}/${formatAddress(address)}`;
      return [{ key, report: () => report(launcher, message, deps) }];
    });
}

/** The UIDs of the pod and of the claims of its VM. */
function ownersOf(launcher: Launcher, deps: UnleasedAddressDeps): Set<string | undefined> {
  return new Set([launcher.metadata.uid, ...claimsOf(launcher, deps).map((claim) => claim.metadata.uid)]);
}

function claimsOf({ metadata, vmi }: Launcher, { claims }: UnleasedAddressDeps): readonly IPAMClaim[] {
  return claims.byIndex(BY_WORKLOAD, joinKey(metadata.namespace, vmi.name));
}

function report(launcher: Launcher, message: string, deps: UnleasedAddressDeps): void {
  const { events, log } = deps;
  const { metadata, vmi } = launcher;
  log.warn({ pod: objectKey(launcher) }, message);
  const [claim] = claimsOf(launcher, deps);
  const itself: EventSubject = {
    apiVersion: KUBEVIRT_API_VERSION,
    kind: VIRTUAL_MACHINE_INSTANCE_KIND,
    metadata: { namespace: metadata.namespace ?? '', name: vmi.name, uid: vmi.uid },
  };
  const vm = claim && claimEventSubjects(claim).at(1);
  events.event(vm ?? itself, 'Warning', EventReason.AddressNotLeased, message);
}

function isRunningLauncher(pod: ClaimPod): pod is Launcher {
  return pod.vmi !== undefined && pod.isRunning === true && !pod.isTerminal && !isBeingDeleted(pod);
}

/** A list that cannot be read as a whole says nothing about any address. */
function readableAddresses(ips: readonly string[]): readonly Address[] {
  const read = parseAddressList(ips);
  return read.ok ? read.addresses : [];
}
