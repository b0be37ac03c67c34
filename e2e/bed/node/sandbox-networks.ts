import type { KubeletPod } from './pod.js';

/** What has become of a pod's sandbox. */
export type SandboxState =
  /** There is none: not yet, or it was lost. */
  | { readonly state: 'none' }
  /** It is up, with these addresses on the pod's own network, without prefix lengths. */
  | { readonly state: 'up'; readonly ips: readonly string[] }
  /** It was stopped for good. */
  | { readonly state: 'ended' };

export const NO_SANDBOX: SandboxState = { state: 'none' };

/** What the kubelet needs of the network of its pods: the runtime's part, and that of the dynamic networks controller. */
export interface SandboxNetworks {
  stateOf(pod: KubeletPod): SandboxState;
  /**
   * Makes a sandbox and attaches the pod's networks, which writes network-status.
   * @throws {Error} in the words of the CNI error; nothing is left then
   */
  attach(pod: KubeletPod): Promise<void>;
  /** Makes a sandbox's secondary networks follow the pod's networks annotation. */
  update(pod: KubeletPod): Promise<void>;
  /** Detaches all and removes the sandbox, if there is one. To be repeated when it fails. */
  detach(pod: KubeletPod): Promise<void>;
  /** The pod is gone: nobody will ask any more. */
  forget(pod: KubeletPod): void;
}

/** Which launchers have the guest on their networks. */
export interface GuestNetworks {
  /** The guest is not here, or no more: nobody answers for its addresses. */
  detachGuest(launcher: KubeletPod): Promise<void>;
  /** The guest runs here from now on: it has its addresses again, and says so to its neighbours. */
  attachGuest(launcher: KubeletPod): Promise<void>;
}
