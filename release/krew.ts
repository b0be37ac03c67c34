import { stringify } from 'yaml';
import type { PluginArchive } from './archives.js';
import type { ReleaseSettings } from './settings.js';

/**
 * The manifest with which krew installs the kubectl plugin: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest.
 * Windows on arm64 runs the executable for amd64.
 */
export function krewManifest(archives: readonly PluginArchive[], { version, repository }: ReleaseSettings): string {
  const platforms = archives.map(({ os, arch, file, program, sha256 }) => ({
    selector: { matchLabels: os === 'windows' ? { os } : { os, arch } },
    uri: `${repository}/releases/download/v${version}/${file}`,
    sha256,
    bin: program,
  }));
  return stringify({
    apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
    kind: 'Plugin',
    metadata: { name: 'holdfast' },
    spec: {
      version: `v${version}`,
      homepage: repository,
      shortDescription: 'Show and reserve persistent IPs of VMs',
      description:
        'Lists and reserves the persistent IP addresses of KubeVirt virtual machines, and migrates networks from whereabouts. ' +
        'For clusters with Holdfast.\n',
      platforms,
    },
  });
}
