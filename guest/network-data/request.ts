import { describeValue } from '../../api/json.js';
import type { VmiSpec } from '../../api/kubevirt.js';
import { byAge, isObjectName } from '../../api/meta.js';
import { NETWORK_DATA_ANNOTATION } from '../../api/names.js';
import type { GuestInterface } from '../interfaces.js';
import type { ObservedGuestWorkload } from '../observed-workload.js';

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
  return name !== undefined && isObjectName(name) ? name : undefined;
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
    if (isDefault === true) return secretRequest(ref.name, ref.format, 'networkDataSecretRef');
    return isObjectName(ref.name) ? { kind: 'undecided', name: ref.name } : { kind: 'none' };
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
  return secretRequest(annotation, ref.format, `annotation ${NETWORK_DATA_ANNOTATION}`);
}

function secretRequest(name: string, format: NetworkDataFormat, field: string): NetworkDataRequest {
  if (isObjectName(name)) return { kind: 'secret', name, format };
  const message = `${describeValue(name)} in ${field} is not a name of a Secret: use lower-case letters, digits, "-" and "."`;
  return { kind: 'refused', reason: 'SecretNameInvalid', message };
}

/** Workloads that may name one Secret, so that its owner can be found. A Secret of more is written for none of them. */
export const MAX_SECRET_USERS = 16;

export interface SecretUsersDeps {
  /** The workloads of the namespace that name the Secret. Undefined: more than {@link MAX_SECRET_USERS}. */
  readonly usersOf: (namespace: string, secret: string) => readonly ObservedGuestWorkload[] | undefined;
  readonly interfacesOf: (workload: ObservedGuestWorkload) => readonly GuestInterface[];
}

/** Decides which of the VMs that name one Secret has it. */
export class SecretUsers {
  readonly #deps: SecretUsersDeps;

  constructor(deps: SecretUsersDeps) {
    this.#deps = deps;
  }

  /** The oldest of the VMs that request a Secret has it. @returns why it is not this one */
  sharingProblem(workload: ObservedGuestWorkload, secret: string): string | undefined {
    const users = this.#deps.usersOf(workload.namespace, secret);
    if (users === undefined) return `More than ${MAX_SECRET_USERS} VMs name Secret ${secret}`;
    for (const user of users.toSorted(byAge)) {
      if (user.owner.uid === workload.owner.uid) return undefined;
      if (this.#requests(user, secret))
        return `Secret ${secret} has the network data of VM ${describeValue(user.owner.name)}`;
    }
    return undefined;
  }

  /** True if one of the VMs of the namespace requests the Secret, or too many name it. A restored one belongs to the VM that writes it first. */
  isRequested({ namespace }: ObservedGuestWorkload, secret: string): boolean {
    const users = this.#deps.usersOf(namespace, secret);
    return users === undefined || users.some((user) => this.#requests(user, secret));
  }

  #requests(user: ObservedGuestWorkload, secret: string): boolean {
    const request = requestOf(user, this.#deps.interfacesOf(user));
    return request.kind === 'secret' && request.name === secret;
  }
}

export function requestOf(
  { spec, networkData }: ObservedGuestWorkload,
  interfaces: readonly GuestInterface[],
): NetworkDataRequest {
  const isDefault = interfaces.some(
    ({ source }) => source.kind === 'claim' && source.pool.guest?.isNetworkDataDefault === true,
  );
  const isUnknown = !isDefault && interfaces.some(({ source }) => source.kind === 'pending');
  return networkDataRequest(spec, networkData, isUnknown ? undefined : isDefault);
}
