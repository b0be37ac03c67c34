import { NETWORK_STATUS_ANNOTATION } from '../../api/names.js';
import type { Client } from '../../kube/client.js';
import { networkStatus, podAddress } from './vmi/network-status.js';
import { NO_SANDBOX, type GuestNetworks, type SandboxNetworks, type SandboxState } from './sandbox-networks.js';
import { KUBELET_PODS, type KubeletPod, uidOf } from './pod.js';

/** Simulated networks: writes network-status as Multus does, but calls no CNI plugin and no IPAM. */
export class SimulatedNetworks implements SandboxNetworks, GuestNetworks {
  readonly #client: Client;
  readonly #known = new Map<string, 'up' | 'ended'>();

  constructor(client: Client) {
    this.#client = client;
  }

  stateOf(pod: KubeletPod): SandboxState {
    const state = this.#known.get(uidOf(pod));
    if (state === undefined) return NO_SANDBOX;
    return state === 'up' ? { state, ips: [podAddress(pod)] } : { state };
  }

  async attach(pod: KubeletPod): Promise<void> {
    await this.update(pod);
    this.#known.set(uidOf(pod), 'up');
  }

  async update({ metadata, ...pod }: KubeletPod): Promise<void> {
    const { namespace, name, resourceVersion } = metadata;
    const annotations = { [NETWORK_STATUS_ANNOTATION]: networkStatus({ metadata, ...pod }) };
    const body = { metadata: { resourceVersion, annotations } };
    await this.#client.patch(KUBELET_PODS, { namespace, name }, { type: 'merge', body });
  }

  detach(pod: KubeletPod): Promise<void> {
    this.#known.set(uidOf(pod), 'ended');
    return Promise.resolve();
  }

  forget(pod: KubeletPod): void {
    this.#known.delete(uidOf(pod));
  }

  followGuest(): Promise<void> {
    return Promise.resolve();
  }

  interfacesOfGuest(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  detachGuest(): Promise<void> {
    return Promise.resolve();
  }

  attachGuest(): Promise<void> {
    return Promise.resolve();
  }
}
