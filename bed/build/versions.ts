/** One version of Kubernetes or of KubeVirt on the bed. */
export interface Version {
  readonly version: string;
  /** The file of the bed's Go module that takes the place of go.mod. */
  readonly modfile?: string;
  /** Build tags for what differs between versions. */
  readonly tags?: string;
  /** Feature gates of KubeVirt that older versions do not know. */
  readonly featureGates?: readonly string[];
  /** Feature gates of KubeVirt that are open by default, and that the bed cannot have. */
  readonly disabledFeatureGates?: readonly string[];
}

/** Minor versions that run together. */
export interface VersionPair {
  readonly kubernetes: string;
  readonly kubeVirt: string;
}

/**
 * All that the bed runs, the default first. Each version of Kubernetes and of KubeVirt is in one pair at least: all combinations
 * would take hours.
 */
export const PAIRS: readonly [VersionPair, ...VersionPair[]] = [
  { kubernetes: '1.37', kubeVirt: '1.8' },
  { kubernetes: '1.36', kubeVirt: '1.8' },
  { kubernetes: '1.35', kubeVirt: '1.7' },
];

type Versions = Readonly<Record<string, Version>>;

/** The newest minor version and the two before it: those that Kubernetes supports. */
const KUBERNETES: Versions = {
  '1.35': { version: 'v1.35.4', modfile: 'kubernetes-1.35.mod', tags: 'kubernetes1.35' },
  '1.36': { version: 'v1.36.3', modfile: 'kubernetes-1.36.mod', tags: 'kubernetes1.36' },
  '1.37': { version: 'v1.37.2', modfile: 'kubernetes-1.37.mod' },
};

/** Each older version has the libraries of Kubernetes that it was written for, since it does not compile with newer ones. */
const KUBEVIRT: Versions = {
  '1.7': { version: 'v1.7.0', modfile: 'kubevirt-1.7.mod', tags: 'kubevirt1.7' },
  '1.8': { version: 'v1.8.0', featureGates: ['LiveUpdateNADRef'] },
  '1.9': {
    version: 'v1.9.0',
    modfile: 'kubevirt-1.9.mod',
    featureGates: ['LiveUpdateNADRef'],
    disabledFeatureGates: ['NodeRestriction'], // one simulated virt-handler serves all nodes
  },
};

/**
 * The version of Kubernetes that BED_KUBERNETES names, as a minor version.
 * @throws {Error} if the bed cannot run it
 */
export function kubernetesVersion(minor = process.env.BED_KUBERNETES): Version {
  return find('BED_KUBERNETES', 'Kubernetes', KUBERNETES, minor || PAIRS[0].kubernetes);
}

/**
 * The version of KubeVirt that BED_KUBEVIRT names, as a minor version.
 * @throws {Error} if the bed cannot run it
 */
export function kubeVirtVersion(minor = process.env.BED_KUBEVIRT): Version {
  return find('BED_KUBEVIRT', 'KubeVirt', KUBEVIRT, minor || PAIRS[0].kubeVirt);
}

function find(variable: string, program: string, versions: Versions, minor: string): Version {
  const found = versions[minor];
  if (found !== undefined) return found;
  const known = Object.keys(versions).join(', ');
  throw new Error(`${variable} is "${minor}", and the test bed runs ${program} ${known}: name one of them`);
}
