import type { MountedSecrets } from '../pod-volumes.js';
import type { Vmi } from './virtual-machine-instance.js';

/**
 * Returns why virt-launcher cannot make the cloud-init disk of a guest. It then starts no guest, and tries again with the same files.
 *
 * As KubeVirt v1.8.0 `pkg/cloud-init/cloud-init.go`, `ReadCloudInitVolumeDataSource`: the first volume counts, of which webhooks admit only one.
 * A key that the Secret lacks is an empty directory in the launcher, which cannot be read as a file.
 */
export function cloudInitProblem({ spec }: Vmi, mounted: MountedSecrets): string | undefined {
  for (const { name = '', cloudInitNoCloud, cloudInitConfigDrive } of spec?.volumes ?? []) {
    const source = cloudInitNoCloud ?? cloudInitConfigDrive;
    if (source === undefined) continue;
    const refs = [source.userDataSecretRef, source.networkDataSecretRef];
    const [userData, networkData] = [
      firstFile(mounted.get(`${name}-udata`), ['userdata', 'userData']),
      firstFile(mounted.get(`${name}-ndata`), ['networkdata', 'networkData']),
    ];
    if (refs.every((ref) => ref !== undefined) && userData === undefined && networkData === undefined)
      return `no cloud-init data-source found at volume: ${name}`;
    const inline = [source.userData, source.userDataBase64, source.networkData, source.networkDataBase64];
    if ([userData, networkData, ...inline].some((text = '') => text !== '')) return undefined;
    return 'userDataBase64, userData, networkDataBase64 or networkData is required for a cloud-init data source';
  }
  return undefined;
}

function firstFile(files: Readonly<Record<string, string>> = {}, names: readonly string[]): string | undefined {
  return names.map((name) => files[name]).find((text) => text !== undefined);
}
