import type { IPAMClaim } from '../../api/ipam-claim.js';
import { splitKey } from '../../api/meta.js';
import { findUnlessGone } from '../../kube/absence.js';
import type { CallOptions, Client } from '../../kube/client.js';
import type { Clock } from '../../kube/clock.js';
import { isConflict, isNotFound } from '../../kube/errors.js';
import type { EventRecorder } from '../../kube/events.js';
import type { Logger } from '../../kube/log.js';
import { IPAM_CLAIMS } from '../../kube/resources.js';
import type { LeaseClient } from '../../cluster/lease-writes.js';
import type { Family } from '../../addressing/address/address.js';
import type { LeaseBook } from '../leases/lease-book.js';
import type { BlockReconciler } from '../blocks/block-reconciler.js';
import type { AllocationLatency, ClaimMetrics } from './metrics.js';
import { recordClaimEvents, statusPatch } from './status.js';
import { listClaimPods, readOwnerPod } from './running/claim-pods.js';
import { type LeaseChangeContext, allocateAll, recordMac, recordWorkload, releaseAll } from './claim-leases.js';
import { transformServedClaim } from './claim-transform.js';
import { type ClaimObservation, leasesOfEarlierClaims } from './observe.js';
import { type AllocationTermsSource, allocationRequestOf, allocationTermsOf, formerLeasesOf, pick } from './pick.js';
import type { Probes } from './probes.js';
import { shouldProbe } from './probing.js';
import type { ClaimStep, ClaimStepOf, DesiredClaimStatus } from './step.js';
import type { ClaimSyncState, WrittenClaims } from './sync-state.js';
import type { VmiOwners } from './running/vmi-owners.js';
import { type ClaimWaitList, startWaiting } from './wait-list.js';

export interface ApplyDependencies extends AllocationTermsSource {
  /** By key. */
  claims: { get(key: string): IPAMClaim | undefined };
  book: LeaseChangeContext['book'] & Pick<LeaseBook, 'ofPod' | 'ofExactClaim' | 'ofClaim' | 'view'>;
  client: LeaseClient & Pick<Client, 'get' | 'listAs'>;
  waitList: Pick<ClaimWaitList, 'set' | 'remove' | 'countOlder'>;
  /** Absent if nodes get no blocks. */
  blocks?: Pick<BlockReconciler, 'noteShortage'>;
  clock: Pick<Clock, 'now' | 'wall'>;
  events: Pick<EventRecorder, 'event'>;
  metrics: Omit<ClaimMetrics, 'clear' | 'setWaiting'>;
  latency: Pick<AllocationLatency, 'onAllocated'>;
  log: Logger;
}

/** The claim of a sync, the state of the sync, and what later syncs remember. */
export interface ApplyContext extends ApplyDependencies, Pick<LeaseChangeContext, 'call' | 'unreadable'> {
  key: string;
  state: ClaimSyncState;
  written: Pick<WrittenClaims, 'wrote'>;
  vmis: Pick<VmiOwners, 'readVmi'>;
  probes: Pick<Probes, 'perform' | 'onPublished'>;
}

/** Carries out a step. The next observation sees its result: in the state of the sync, or in the lease book. */
export async function applyStep(
  step: Exclude<ClaimStep, ClaimStepOf<'none' | 'await-probe'>>,
  observed: ClaimObservation | undefined,
  context: ApplyContext,
): Promise<void> {
  const { call, metrics, vmis } = context;
  switch (step.kind) {
    case 'read-claim':
      return applyRead(context);
    case 'read-vmi':
      return vmis.readVmi(step, call);
    case 'record-mac':
      return recordMac(step.leases, step.mac, context);
    case 'record-workload':
      return recordWorkload(step.leases, step.workloadUID, context);
    case 'release':
      await releaseAll(step.leases, context);
      metrics.countReleases(step.leases.length);
      return;
    default:
      if (observed !== undefined) await applyObserved(step, observed, context);
  }
}

/** Carries out a step for a claim that exists. */
async function applyObserved(
  step: Exclude<
    ClaimStep,
    ClaimStepOf<'none' | 'await-probe' | 'read-claim' | 'read-vmi' | 'record-mac' | 'record-workload' | 'release'>
  >,
  observed: ClaimObservation,
  context: ApplyContext,
): Promise<void> {
  const { state, client, call, probes } = context;
  const { claim } = observed;
  switch (step.kind) {
    case 'list-pods':
      state.onPodsListed(await listClaimPods(claim, client, call));
      return;
    case 'read-owner-pod':
      state.onOwnerRead(claim.status?.ownerPod?.name ?? '', await readOwnerPod(claim, client, call));
      return;
    case 'allocate':
      return applyAllocation(step, observed, context);
    case 'write-status':
      return applyStatus(step, observed, context);
    default:
      return probes.perform(step, observed, context);
  }
}

/** Reads the claim live. An owner of leases that existed before the read, and that the read does not return, is gone. */
async function applyRead({ key, state, book, client, call }: ApplyContext): Promise<void> {
  const owners = leasesOfEarlierClaims(key, undefined, book).flatMap(({ owner }) => owner?.uid ?? []);
  state.beforeRead(book);
  state.onClaimRead(await readClaim(key, client, call), owners);
}

async function applyAllocation(
  step: ClaimStepOf<'allocate'>,
  observed: ClaimObservation,
  context: ApplyContext,
): Promise<void> {
  const { key, state, book, claims, waitList, blocks, stickyMAC, metrics } = context;
  const [{ purpose }, { claim, resolution }] = [step, observed];
  if (resolution.kind !== 'served') return;
  const { pool } = resolution;
  const request = { ...allocationRequestOf(step, observed, stickyMAC), former: formerLeasesOf(claim, pool, book) };
  const isProbed = (family: Family) => shouldProbe(observed, family);
  const chosen = pick(claim, pool, request, {
    view: book.view(pool),
    terms: allocationTermsOf(claim, pool, context),
    claims,
    waitList,
    isDraining: purpose === 'drain',
    noteShortage: (family) => blocks?.noteShortage(pool.name, family),
  });
  // no await between the choice and the moment when it is pending or waited for
  const outcome = chosen.ok
    ? await allocateAll(chosen.candidates, { claim, pool, launchers: request.launchers, isProbed }, context)
    : ({ kind: 'refused', refusal: chosen.refusal } as const);
  metrics.countAllocation(purpose, outcome.kind);
  if (outcome.kind === 'refused') {
    metrics.countRefusal(outcome.refusal.reason);
    state.onRefused(step, outcome.refusal);
    startWaiting(key, { claim, pool, ...state.findings }, waitList);
  } else if (outcome.kind === 'allocated') {
    waitList.remove(key);
    state.onAllocated(purpose);
  }
}

async function applyStatus(
  { desired }: ClaimStepOf<'write-status'>,
  { claim, held }: ClaimObservation,
  context: ApplyContext,
): Promise<void> {
  const { key, state, book, written, probes, log, events, latency } = context;
  state.beforeRead(book);
  const after = await patchStatus(claim, desired, context);
  if (after === undefined) return applyRead(context);
  const { ips, allocated, request } = desired;
  const isNews = claim.status?.ips?.join() !== ips.join();
  const level = allocated.status !== 'True' || request !== undefined ? 'warn' : isNews ? 'info' : 'debug';
  log[level]({ claim: key, ips, reason: allocated.reason }, request?.message ?? allocated.message);
  recordClaimEvents(claim, desired, events);
  if (ips.length > 0) {
    latency.onAllocated(claim);
    if (isNews) probes.onPublished(held);
  }
  written.wrote(key, after);
  state.onStatusWritten(after);
}

/** @returns the claim as the API server stored it; undefined if it was changed or deleted meanwhile */
async function patchStatus(
  claim: IPAMClaim,
  desired: DesiredClaimStatus,
  { client, clock, call }: ApplyContext,
): Promise<IPAMClaim | undefined> {
  const { namespace, name } = claim.metadata;
  const body = statusPatch(claim, desired, clock.wall());
  try {
    const options = { ...call, subresource: 'status' };
    return transformServedClaim(await client.patch(IPAM_CLAIMS, { namespace, name }, { type: 'merge', body }, options));
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return undefined;
    throw error;
  }
}

/** @returns undefined if the API server answers that the claim does not exist */
async function readClaim(key: string, client: Pick<Client, 'get'>, call: CallOptions): Promise<IPAMClaim | undefined> {
  const claim = await findUnlessGone(client, IPAM_CLAIMS, splitKey(key), call);
  return claim && transformServedClaim(claim);
}
