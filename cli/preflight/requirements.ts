/** What Holdfast needs. A test compares it with docs/reference/versions.md, the chart and the test bed. */
export const REQUIREMENTS = {
  /** The oldest minor version. */
  kubernetes: '1.31',
  /** The oldest minor version that is tested: Holdfast supports those that KubeVirt's project supports. */
  kubeVirt: '1.7',
  /** The oldest major version. */
  multus: '4',
  /** Ports of the API server to which the shipped NetworkPolicies let pods connect. */
  apiServerPorts: [443, 6443],
  /** Where the shipped manifests install the CNI plugin. */
  pluginFolder: '/opt/cni/bin',
  /** The namespace of KubeVirt in the shipped manifests. */
  kubeVirtNamespace: 'kubevirt',
} as const;

/** Whether a version like `v1.30.2+k3s1` is older than one like `1.31` or `4`; undefined if it is no version, as that of a build without one (0.0.0). */
export function isOlder(version: string, than: string): boolean | undefined {
  const [, major = '', minor = '0'] = /^v?(\d{1,6})(?:\.(\d{1,6}))?/.exec(version) ?? [];
  if (major === '' || /^v?0\.0\b/.test(version)) return undefined;
  const [leastMajor = 0, leastMinor = 0] = than.split('.').map(Number);
  return Number(major) < leastMajor || (Number(major) === leastMajor && Number(minor) < leastMinor);
}
