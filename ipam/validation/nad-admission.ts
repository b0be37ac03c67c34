import { type AdmissionRequest, type AdmissionResponse, Reviewer } from '../../admission/review.js';
import {
  HOLDFAST_IPAM,
  ipamSections,
  misspelledFlagProblems,
  unintendedLoss,
} from '../../api/networks/ipam-delegation.js';
import { joinKey } from '../../api/meta.js';
import { uncertainIpam } from '../../api/networks/nad-guests.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/networks/network-attachment.js';
import { type ParsedNad, transformNad } from '../../cluster/transforms.js';
import type { Clock } from '../../kube/clock.js';
import { FairSemaphore, FairSemaphoreError } from '../../kube/fair-semaphore.js';
import { runInSlices } from '../../kube/run-in-slices.js';
import { guardModeOf, warnOfGuard } from './guard-warnings.js';
import { reviewBridge, reviewNadConfig, reviewNextHops } from './nad-config-review.js';
import { delegatesToHoldfast, reviewNad } from './nad-review.js';
import type { ValidationRefusal, ValidationResult } from './review.js';
import { type ValidationAdmissionOptions, answerReview, denyResource, readNadObject } from './review-answer.js';

const NAD_RESOURCE = 'k8s.cni.cncf.io/v1/network-attachment-definitions';

/**
 * Creates the reviewer of NADs. It never rejects NADs of other IPAMs and, if it fails itself, no NAD at all: pool and NAD show later what is wrong.
 */
export function createNadReviewer(options: ValidationAdmissionOptions): Reviewer {
  const turns = new ReviewTurns(options.clock);
  const decideOn = (request: AdmissionRequest) => decide(request, turns, options);
  return new Reviewer({
    ...options,
    subject: 'the network',
    component: 'holdfast-ipam',
    decide: decideOn,
    onFault: allowUnchecked,
  });
}

async function decide(
  { operation, resource, namespace, object, oldObject }: AdmissionRequest,
  turns: ReviewTurns,
  options: ValidationAdmissionOptions,
): Promise<AdmissionResponse> {
  if (resource !== NAD_RESOURCE) return denyResource(resource, NAD_RESOURCE);
  if (operation !== 'CREATE' && operation !== 'UPDATE') return { allowed: true };
  const written = readNadObject(object, 'request.object', namespace);
  const nad = transformNad(written);
  const flagWarnings = warnOfPersistence(nad);
  if (!delegatesToHoldfast(nad))
    return {
      allowed: true,
      warnings: [...warnOfUnreadableConfig(written), ...flagWarnings, ...warnOfGuard(written, 'Off')],
    };
  const was = operation === 'UPDATE' ? readNadObject(oldObject, 'request.oldObject', namespace) : undefined;
  const oldNad = was && transformNad(was);
  const missing = await options.waitForSync();
  if (missing !== undefined) return allowUnchecked(`Holdfast's IPAM is not ready to review networks: ${missing}`);
  const subject = `NetworkAttachmentDefinition ${joinKey(namespace, nad.metadata.name)}`;
  const { view } = options;
  const old = was && oldNad && { written: was, parsed: oldNad };
  const review = joinReviews(
    reviewNad({ nad, oldNad }, view),
    reviewNadConfig(written, was),
    reviewNextHops(written, nad, view),
    reviewBridge({ written, parsed: nad }, old, view),
  );
  const reviewed = await turns.run(namespace, review).catch(describeFullQueue);
  if (typeof reviewed === 'string') return allowUnchecked(reviewed);
  const guardWarnings = warnOfGuard(written, guardModeOf(nad, view.pools.list()));
  const result = { ...reviewed, warnings: [...flagWarnings, ...guardWarnings, ...reviewed.warnings] };
  return answerReview({ operation, subject, result }, options);
}

function* joinReviews(
  ...reviews: readonly Generator<undefined, ValidationResult>[]
): Generator<undefined, ValidationResult> {
  const [refusals, warnings]: [ValidationRefusal[], string[]] = [[], []];
  for (const review of reviews) {
    const result = yield* review;
    refusals.push(...result.refusals);
    warnings.push(...result.warnings);
  }
  return { refusals, warnings };
}

/** @throws any other error */
function describeFullQueue(error: unknown): string {
  if (error instanceof FairSemaphoreError) return error.message;
  throw error;
}

function allowUnchecked(reason: string): AdmissionResponse {
  return { allowed: true, warnings: [`not checked: ${reason}`] };
}

/** Warns of an unreadable config that names Holdfast. It is never rejected, because it is unknown which IPAM it is for. */
export function warnOfUnreadableConfig(nad: NetworkAttachmentDefinition): string[] {
  if (!String(nad.spec?.config).includes(`"${HOLDFAST_IPAM}"`)) return [];
  const problem = configProblem(nad);
  if (problem === undefined) return [];
  return [`${problem}. It names "${HOLDFAST_IPAM}", but no workload gets an address from it until it is corrected`];
}

function configProblem(nad: NetworkAttachmentDefinition): string | undefined {
  const config = readCniConfig(nad);
  if (!config.ok) return `${config.problem.field} ${config.problem.message}`;
  if (config.value === undefined || ipamSections(config.value).length > 0) return undefined;
  return uncertainIpam(config.value);
}

/** Warns of keys that are nearly the flag, and of its absence if nobody has decided that VMs lose their addresses. */
export function warnOfPersistence({ config, delegation }: Pick<ParsedNad, 'config' | 'delegation'>): string[] {
  if (!config.ok || delegation.kind === 'other') return [];
  const loss = unintendedLoss(config.network, delegation.kind);
  return [...new Set([...misspelledFlagProblems(config.network), ...(loss === undefined ? [] : [loss])])];
}

/** The API server waits 5 s for an answer. */
const MAX_WAIT_MS = 3_000;
const MAX_QUEUED = 64;

/**
 * Runs reviews that cost CPU time, of which tenants can cause as many as they want, also by dry runs. They get half of the time at most, because the leader
 * works in the same process. Namespaces take turns.
 */
export class ReviewTurns {
  readonly #clock: Pick<Clock, 'now' | 'setTimer'>;
  readonly #turns = new FairSemaphore(
    { max: 1, maxPerKey: 1, maxQueuedPerKey: MAX_QUEUED },
    (namespace) => `reviews of namespace ${namespace}`,
  );

  constructor(clock: Pick<Clock, 'now' | 'setTimer'>) {
    this.#clock = clock;
  }

  /**
   * @param review yields between short steps
   * @throws {FairSemaphoreError} if there are too many; and what the review throws
   */
  run<T>(namespace: string, review: Iterator<undefined, T>): Promise<T> {
    const clock = this.#clock;
    return new Promise((resolve, reject) => {
      const work = async () => {
        const began = clock.now();
        try {
          resolve(await runInSlices(review, clock));
        } catch (error) {
          reject(error instanceof Error ? error : new TypeError(String(error)));
        }
        const tookMs = clock.now() - began;
        if (tookMs > 0) await new Promise<void>((over) => clock.setTimer(tookMs, over));
      };
      this.#turns.run(namespace, 1, work, { ms: MAX_WAIT_MS, clock }).catch(reject);
    });
  }
}
