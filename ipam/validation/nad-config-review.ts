import { versionProblemOf } from '../../api/networks/cni-version.js';
import { HOLDFAST_IPAM, type IpamSection, ipamSections } from '../../api/networks/ipam-delegation.js';
import { type NetworkAttachmentDefinition, readCniConfig } from '../../api/networks/network-attachment.js';
import { ResultExtrasError, readResultExtras } from '../../addressing/pool/result-extras.js';
import { ineffectiveKeys } from './ineffective-keys.js';
import type { ValidationResult } from './review.js';

/** The API server shows only a few warnings. */
const MAX_KEYS = 4;

interface ConfigReview {
  /** What agents refuse. */
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Reviews what a pool does not depend on in the config of a NAD that delegates to Holdfast, in steps of up to 30 ms. Pure.
 * @param oldNad a change may keep what was wrong in it
 */
export function* reviewNadConfig(
  nad: NetworkAttachmentDefinition,
  oldNad: NetworkAttachmentDefinition | undefined,
): Generator<undefined, ValidationResult> {
  const { problems, warnings } = yield* reviewConfig(nad);
  const before = oldNad === undefined ? undefined : yield* reviewConfig(oldNad);
  const known = new Set([...(before?.problems ?? []), ...(before?.warnings ?? [])]);
  return {
    refusals: problems.filter((text) => !known.has(text)).map((message) => ({ check: 'delegation', message })),
    warnings: [
      ...problems.filter((text) => known.has(text)),
      ...warnings.filter((text) => !known.has(text)).slice(0, MAX_KEYS),
    ],
  };
}

function* reviewConfig(nad: NetworkAttachmentDefinition): Generator<undefined, ConfigReview> {
  const read = readCniConfig(nad);
  const config = (read.ok && read.value) || {};
  const section = ipamSections(config).find(({ type }) => type === HOLDFAST_IPAM);
  if (section === undefined) return { problems: [], warnings: [] };
  const problems = [versionProblemOf(config) ?? [], extrasProblems(section)].flat();
  yield;
  const warnings = ineffectiveKeys(config, section);
  yield;
  return { problems: problems.map((problem) => `${problem}. Until then, no pod on this network starts`), warnings };
}

/** The message of the agent, with the path in the NAD. */
function extrasProblems({ ipam, path }: IpamSection): string[] {
  try {
    readResultExtras(ipam, path);
    return [];
  } catch (error) {
    if (error instanceof ResultExtrasError) return [error.message];
    throw error;
  }
}
