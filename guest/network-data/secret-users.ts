import { describeValue } from '../../api/json.js';
import { byAge } from '../../api/meta.js';
import type { GuestInterface } from '../interfaces.js';
import type { ObservedGuestWorkload } from '../observed-workload.js';
import { type NetworkDataRequest, networkDataRequest } from './request.js';

/** Workloads that may name one Secret, so that its owner can be found. A Secret of more is written for none of them. */
export const MAX_SECRET_USERS = 16;

export interface SecretUsersDeps {
  /** The workloads of the namespace that name the Secret. */
  readonly usersOf: (namespace: string, secret: string) => readonly ObservedGuestWorkload[];
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
    if (users.length > MAX_SECRET_USERS) return `More than ${MAX_SECRET_USERS} VMs name Secret ${secret}`;
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
    return users.length > MAX_SECRET_USERS || users.some((user) => this.#requests(user, secret));
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
