import { describeValue } from '../json.js';

/** The versions of the CNI specification that the plugin speaks. */
export const SUPPORTED_VERSIONS = ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'] as const;
export type CniVersion = (typeof SUPPORTED_VERSIONS)[number];

export function isSupportedVersion(given: unknown): given is CniVersion {
  return SUPPORTED_VERSIONS.some((each) => each === given);
}

/** Says what is wrong with a version that is not supported. */
export function describeVersionProblem(given: unknown): string {
  // the default of the CNI spec
  const shown = given === undefined || given === '' ? 'absent, which means "0.1.0"' : describeValue(given);
  return `cniVersion is ${shown}: set it to one of ${SUPPORTED_VERSIONS.join(', ')} in the network's config`;
}
