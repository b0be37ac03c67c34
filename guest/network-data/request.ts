import { describeValue } from '../../api/json.js';
import type { VmiSpec } from '../../api/kubevirt.js';
import { NETWORK_DATA_ANNOTATION } from '../../api/names.js';

/** The formats that cloud-init reads from the two kinds of disks. */
export type NetworkDataFormat = 'version-2' | 'openstack';

/** The Secret that a VM wants to have written, or why its request cannot be met. */
export type NetworkDataRequest =
  | { readonly kind: 'none' }
  /** Nobody knows yet whether a pool makes network data the default for the Secret that the VM names. */
  | { readonly kind: 'undecided'; readonly name: string }
  | {
      readonly kind: 'refused';
      readonly reason: 'NoCloudInitVolume' | 'SecretMismatch' | 'SecretNameInvalid';
      readonly message: string;
    }
  | { readonly kind: 'secret'; readonly name: string; readonly format: NetworkDataFormat };

const OBJECT_NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const MAX_NAME = 253;

/** Returns the name of the Secret in the first cloud-init volume, the only one that KubeVirt uses. */
export function secretRefOf(
  spec: VmiSpec | undefined,
): { name: string | undefined; format: NetworkDataFormat } | undefined {
  for (const { cloudInitNoCloud, cloudInitConfigDrive } of spec?.volumes ?? []) {
    const source = cloudInitNoCloud ?? cloudInitConfigDrive;
    if (source === undefined) continue;
    const format = cloudInitNoCloud === undefined ? 'openstack' : 'version-2';
    return { name: source.networkDataSecretRef?.name, format };
  }
  return undefined;
}

/** Returns the name of the Secret that the launcher of a VM mounts, whether the VM wants it to be written or not. */
export function secretNameIn(spec: VmiSpec | undefined): string | undefined {
  const name = secretRefOf(spec)?.name;
  return name !== undefined && isSecretName(name) ? name : undefined;
}

function isSecretName(name: string): boolean {
  return name.length <= MAX_NAME && OBJECT_NAME.test(name);
}

/**
 * Reads the request of a VM.
 * @param annotation of the VM's template, or of a VMI without a VM
 * @param isDefault a pool of the VM makes network data the default; undefined if it is not known yet
 */
export function networkDataRequest(
  spec: VmiSpec | undefined,
  annotation: string | undefined,
  isDefault: boolean | undefined,
): NetworkDataRequest {
  if (annotation === '') return { kind: 'none' };
  const ref = secretRefOf(spec);
  if (annotation === undefined) {
    if (isDefault === false || ref?.name === undefined) return { kind: 'none' };
    if (isDefault === true) return requestOf(ref.name, ref.format, 'networkDataSecretRef');
    return isSecretName(ref.name) ? { kind: 'undecided', name: ref.name } : { kind: 'none' };
  }
  const subject = `Annotation ${NETWORK_DATA_ANNOTATION}: ${describeValue(annotation)}`;
  if (ref === undefined) {
    const message = `${subject} has no effect, because the VM has no cloudInitNoCloud or cloudInitConfigDrive volume: add one with this Secret in networkDataSecretRef`;
    return { kind: 'refused', reason: 'NoCloudInitVolume', message };
  }
  if (ref.name !== annotation) {
    const message = `${subject} is not the Secret in networkDataSecretRef of the VM's first cloud-init volume, which is ${describeValue(ref.name)}: write the same name in both`;
    return { kind: 'refused', reason: 'SecretMismatch', message };
  }
  return requestOf(annotation, ref.format, `annotation ${NETWORK_DATA_ANNOTATION}`);
}

function requestOf(name: string, format: NetworkDataFormat, field: string): NetworkDataRequest {
  if (isSecretName(name)) return { kind: 'secret', name, format };
  const message = `${describeValue(name)} in ${field} is not a name of a Secret: use lower-case letters, digits, "-" and "."`;
  return { kind: 'refused', reason: 'SecretNameInvalid', message };
}
