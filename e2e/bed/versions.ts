/** A version of KubeVirt that the bed can run. */
export interface KubeVirtVersion {
  readonly version: string;
  /** The file of the bed's Go module that takes the place of go.mod. */
  readonly modfile?: string;
  /** Build tags for what differs between versions. */
  readonly tags?: string;
}

const NEWEST_KUBEVIRT = '1.8';
/** Each older version has the libraries of Kubernetes that it was written for, since it does not compile with newer ones. */
const KUBEVIRT: Readonly<Record<string, KubeVirtVersion>> = {
  '1.7': { version: 'v1.7.0', modfile: 'kubevirt-1.7.mod', tags: 'kubevirt1.7' },
  '1.8': { version: 'v1.8.0' },
};

/**
 * The version of KubeVirt that BED_KUBEVIRT names, as a minor version.
 * @throws {Error} if the bed cannot run it
 */
export function kubeVirtVersion(minor = process.env.BED_KUBEVIRT): KubeVirtVersion {
  const found = KUBEVIRT[minor || NEWEST_KUBEVIRT];
  if (found !== undefined) return found;
  const known = Object.keys(KUBEVIRT).join(', ');
  throw new Error(`BED_KUBEVIRT is "${minor ?? ''}", and the test bed runs KubeVirt ${known}: name one of them`);
}
