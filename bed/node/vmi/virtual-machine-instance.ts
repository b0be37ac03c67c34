import type { VirtualMachineInstance, VmInterface, VmiInterfaceStatus, VmNetwork } from '../../../api/kubevirt.js';
import type { Resource } from '../../../kube/resource.js';
import { VIRTUAL_MACHINE_INSTANCES } from '../../../kube/resources.js';
import { timestamp } from '../step.js';

/** The fields of a VMI that virt-handler reads and writes. */
export interface Vmi extends VirtualMachineInstance {
  spec?: {
    networks?: VmNetwork[];
    domain?: { devices?: { interfaces?: WantedInterface[] } };
    volumes?: { name?: string; cloudInitNoCloud?: CloudInitDisk; cloudInitConfigDrive?: CloudInitDisk }[];
  };
  status?: VmiStatus;
}

/** The data of a cloud-init disk, or the Secrets that have it. */
interface CloudInitDisk {
  userData?: string;
  userDataBase64?: string;
  userDataSecretRef?: { name?: string };
  networkData?: string;
  networkDataBase64?: string;
  networkDataSecretRef?: { name?: string };
}

/** An interface in the VMI's spec. */
export interface WantedInterface extends VmInterface {
  macAddress?: string;
  masquerade?: object;
}

export type VmiPhase = 'Pending' | 'Scheduling' | 'Scheduled' | 'Running' | 'Succeeded' | 'Failed' | 'Unknown';

export interface VmiStatus {
  phase?: VmiPhase;
  nodeName?: string;
  phaseTransitionTimestamps?: { phase: string; phaseTransitionTimestamp: string }[];
  conditions?: VmiCondition[];
  interfaces?: GuestInterface[];
  migrationState?: MigrationState;
  selinuxContext?: string;
  migrationTransport?: string;
  launcherContainerImageVersion?: string;
  evacuationNodeName?: string;
}

export interface VmiCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastProbeTime: string | null;
  lastTransitionTime: string;
}

/** It is False while virt-handler cannot start the guest, and absent otherwise. */
const SYNCHRONIZED = 'Synchronized';

export interface GuestInterface extends VmiInterfaceStatus {
  mac?: string;
  queueCount?: number;
  linkState?: string;
  /** The name in the guest, if its agent reports it. */
  interfaceName?: string;
  /** The first of the addresses. */
  ipAddress?: string;
  ipAddresses?: string[];
}

/** KubeVirt's settings for a migration, or those of a MigrationPolicy. */
export interface MigrationConfiguration {
  allowPostCopy?: boolean;
  /** Per second; without a limit if it is 0. */
  bandwidthPerMigration?: string;
  completionTimeoutPerGiB?: number;
}

/** Created by virt-controller, and updated by the virt-handlers of both nodes. */
export interface MigrationState {
  migrationUid?: string;
  migrationConfiguration?: MigrationConfiguration;
  sourceNode?: string;
  sourcePod?: string;
  targetNode?: string;
  targetPod?: string;
  targetNodeAddress?: string;
  /** Port on the target's node to port of the guest's libvirt. */
  targetDirectMigrationNodePorts?: Record<string, number>;
  targetNodeDomainDetected?: boolean;
  targetNodeDomainReadyTimestamp?: string;
  startTimestamp?: string;
  endTimestamp?: string;
  mode?: string;
  completed?: boolean;
  failed?: boolean;
  failureReason?: string;
  abortRequested?: boolean;
  abortStatus?: string;
}

export const VMIS = VIRTUAL_MACHINE_INSTANCES as Resource<Vmi>;

/** Whether the guest was started and has not ended. */
export function hasGuest(vmi: Vmi | undefined): boolean {
  return vmi?.status?.phase === 'Scheduled' || vmi?.status?.phase === 'Running';
}

export function hasEnded(vmi: Vmi): boolean {
  return vmi.status?.phase === 'Succeeded' || vmi.status?.phase === 'Failed';
}

/** The migration that is not finished yet. */
export function migrationInFlight(vmi: Vmi): MigrationState | undefined {
  const state = vmi.status?.migrationState;
  if (!state?.migrationUid || !state.targetNode || state.completed || state.failed) return undefined;
  return state;
}

/** Returns `vmi` in another phase, with the time of the transition. */
export function inPhase(vmi: Vmi, phase: VmiPhase, now: number): Vmi {
  const transition = { phase, phaseTransitionTimestamp: timestamp(now) };
  const phaseTransitionTimestamps = [...(vmi.status?.phaseTransitionTimestamps ?? []), transition];
  return withStatus(vmi, { phase, phaseTransitionTimestamps });
}

export function withStatus(vmi: Vmi, changes: VmiStatus): Vmi {
  return { ...vmi, status: { ...vmi.status, ...changes } };
}

/** Sets a condition to True. If it is True already, its time does not change. */
export function withCondition(vmi: Vmi, type: string, now: number): Vmi {
  const conditions = vmi.status?.conditions ?? [];
  if (conditions.some((condition) => condition.type === type && condition.status === 'True')) return vmi;
  const met = { type, status: 'True', lastProbeTime: null, lastTransitionTime: timestamp(now) };
  return withStatus(vmi, { conditions: [...conditions.filter((condition) => condition.type !== type), met] });
}

/**
 * Sets or removes the condition that the guest cannot be started, as KubeVirt v1.8.0 `pkg/controller/conditions.go`, `CheckFailure`.
 * @returns the same object if nothing changes
 */
export function withSyncError(vmi: Vmi, error: string | undefined, now: number): Vmi {
  const conditions = vmi.status?.conditions ?? [];
  const others = conditions.filter(({ type }) => type !== SYNCHRONIZED);
  if ((error === undefined) === (others.length === conditions.length)) return vmi;
  if (error === undefined) return withStatus(vmi, { conditions: others });
  const failed = { type: SYNCHRONIZED, status: 'False', lastProbeTime: null, lastTransitionTime: timestamp(now) };
  const reason = 'Synchronizing with the Domain failed.';
  return withStatus(vmi, { conditions: [...others, { ...failed, reason, message: error }] });
}
