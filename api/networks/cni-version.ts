import { asList, describeValue } from '../json.js';

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

/**
 * Returns what is wrong with the version in which plugins of a NAD are called; undefined if it is supported. libcni chooses one of `cniVersions`, which
 * only lists have. Multus calls them without a version if there is none.
 */
export function versionProblemOf({ type = '', cniVersion, cniVersions }: Record<string, unknown>): string | undefined {
  const versions = [cniVersion, ...(type === '' ? asList(cniVersions) : [])];
  return versions.some(isSupportedVersion) ? undefined : `spec.config.${describeVersionProblem(cniVersion)}`;
}
