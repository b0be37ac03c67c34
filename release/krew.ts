import { stringify } from 'yaml';
import type { PluginArchive } from './archives.js';
import type { ReleaseSettings } from './settings.js';

/**
 * The manifest with which krew installs the kubectl plugin: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest. krew starts only
 * .exe files on Windows, so Windows is left out until there is one.
 */
export function krewManifest(archives: readonly PluginArchive[], { version, repository }: ReleaseSettings): string {
  const platforms = archives
    .filter(({ os }) => os !== 'windows')
    .map(({ os, arch, file, program, sha256 }) => ({
      selector: { matchLabels: { os, arch } },
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
      caveats: 'Needs Node.js 20.19 or newer on the PATH.\n',
      platforms,
    },
  });
}
