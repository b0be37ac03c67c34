import type { AgentInterface } from './vmi/guest-agent.js';
import type { KubeletPod } from './pod.js';
import type { Vmi } from './vmi/virtual-machine-instance.js';
import type { GuestCopy } from './vmi/vmi-view.js';

/** The state of a pod's sandbox. */
export type SandboxState =
  /** It does not exist yet, or was lost. */
  | { readonly state: 'none' }
  /** It exists, with these addresses on the pod network, without prefix lengths. */
  | { readonly state: 'up'; readonly ips: readonly string[] }
  /** It was stopped and will not be replaced. */
  | { readonly state: 'ended' };

export const NO_SANDBOX: SandboxState = { state: 'none' };

/** The networks of pods as the kubelet needs them, with the tasks of the runtime and the dynamic networks controller. */
export interface SandboxNetworks {
  stateOf(pod: KubeletPod): SandboxState;
  /**
   * Creates a sandbox and attaches the pod's networks, which writes network-status.
   * @throws {Error} with the CNI error, after the sandbox was removed
   */
  attach(pod: KubeletPod): Promise<void>;
  /** Adapts the secondary networks of a sandbox to the pod's networks annotation. */
  update(pod: KubeletPod): Promise<void>;
  /** Detaches all networks and removes the sandbox, if it exists. Must be repeated after a failure. */
  detach(pod: KubeletPod): Promise<void>;
  /** Forgets a pod that no longer exists. */
  forget(pod: KubeletPod): void;
}

/** Connects guests to the networks of their launchers. */
export interface GuestNetworks {
  /**
   * Adapts a guest to its VMI: connects interfaces that are plugged in, removes those that are unplugged, and ends with the guest.
   * @param launcher in which it runs
   */
  followGuest(vmi: Vmi, launcher: KubeletPod | undefined): Promise<void>;
  /** The interfaces of a guest with a kernel of its own; undefined for others. */
  interfacesOfGuest(vmi: Vmi): Promise<readonly AgentInterface[] | undefined>;
  /** The copy of a guest that QEMU migrates; undefined, or without this method, if none does. */
  copyOfGuest?(vmi: Vmi): Promise<GuestCopy | undefined>;
  /** Removes the guest's addresses from a launcher in which it does not run. @param vmi in migration to the launcher, or from it */
  detachGuest(launcher: KubeletPod, vmi: Vmi): Promise<void>;
  /** Gives the guest's addresses to the launcher in which it now runs, and announces them. */
  attachGuest(launcher: KubeletPod): Promise<void>;
}
