import { isBeingDeleted } from '../../../api/meta.js';
import { isTerminal } from '../../../api/pod.js';
import { nodeAddress } from '../node-object.js';
import { change, timestamp, waitFor, type Step } from '../step.js';
import { inPhase, withStatus, type MigrationState, type Vmi, type VmiCondition } from './virtual-machine-instance.js';
import type { GuestCopy, VmiView } from './vmi-view.js';

const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
const OUTDATED_LABEL = 'kubevirt.io/outdatedLauncherImage';
const GUEST_LIBVIRT_PORT = 40_000;
/** How long a simulated copy takes. */
const COPY_MS = 500;
/** How often QEMU is asked about a copy; virt-launcher does so every 400 ms. */
const COPY_INTERVAL_MS = 200;

/**
 * One step of a live migration by the virt-handlers of both nodes:
 *
 *     handed over → target prepared → copying → domain on target → completed, the guest runs on the target
 *     any of these → failed           the copy breaks, or the target's launcher ends
 *     any of these → aborted          the VirtualMachineInstanceMigration is deleted
 *
 * virt-controller follows with the phases of the VirtualMachineInstanceMigration: PreparingTarget, TargetReady, Running,
 * Succeeded or Failed. See https://kubevirt.io/user-guide/compute/live_migration.
 */
export function stepMigration(vmi: Vmi, migration: MigrationState, view: VmiView): Step<Vmi> {
  const target = migration.targetNode ?? '';
  const hasLeft = mayRunOnTarget(view);
  if (migration.abortRequested && !hasLeft) {
    return change(failed(vmi, view.now, 'Live migration aborted', { abortStatus: 'Succeeded' }), 'migration aborted');
  }
  if (isTargetGone(migration, view) && !hasLeft) {
    return change(failed(vmi, view.now, 'The target launcher ended'), 'migration failed: its target is gone');
  }
  if (!view.isNodeUp(target)) return waitFor(`node ${target}, the migration's target, to come back`);
  if (!migration.targetNodeAddress) {
    const ports = { [GUEST_LIBVIRT_PORT]: 0 };
    return change(
      withMigration(vmi, { targetNodeAddress: nodeAddress(target), targetDirectMigrationNodePorts: ports }),
      'migration target prepared',
    );
  }
  if (!migration.startTimestamp) {
    return change(withMigration(vmi, { startTimestamp: timestamp(view.now), mode: 'PreCopy' }), 'migration copies');
  }
  return view.copy ? stepQemuCopy(vmi, migration, view.copy, view.now) : stepCopy(vmi, migration, view);
}

function mayRunOnTarget({ copy }: VmiView): boolean {
  return copy?.mode === 'PostCopy' || copy?.state === 'completed';
}

/** Follows QEMU, as virt-handler follows libvirt. */
function stepQemuCopy(vmi: Vmi, migration: MigrationState, copy: GuestCopy, now: number): Step<Vmi> {
  const { state, mode, reason } = copy;
  if (state === 'failed') {
    const next = failed(vmi, now, `Live migration failed ${reason}`);
    // no side has the whole guest after post-copy has begun
    return change(mode === 'PostCopy' ? inPhase(next, 'Failed', now) : next, `migration failed: ${reason}`);
  }
  if (!migration.targetNodeDomainDetected) return change(domainOnTarget(vmi), 'domain on target');
  if (mode !== migration.mode) {
    return change(withMigration(runningOnTarget(vmi, now), { mode }), `the guest runs on the target: ${mode}`);
  }
  if (state === 'active') return waitFor('QEMU to copy the guest', COPY_INTERVAL_MS);
  return change(completed(vmi, migration, now), `migration completed, now on ${migration.targetNode ?? ''}`);
}

function stepCopy(vmi: Vmi, migration: MigrationState, view: VmiView): Step<Vmi> {
  const { migration: outcome } = view.switches;
  if (outcome !== 'fail' && !migration.targetNodeDomainDetected) return change(domainOnTarget(vmi), 'domain on target');
  if (outcome === 'hold') return waitFor('the copy, which is held');
  const since = view.copyingSince ?? Date.parse(migration.startTimestamp ?? '');
  const remaining = since + COPY_MS - view.now;
  if (remaining > 0) return waitFor('the copy', remaining);
  if (outcome === 'fail') return change(failed(vmi, view.now, 'The copy broke off'), 'migration failed');
  return change(completed(vmi, migration, view.now), `migration completed, now on ${migration.targetNode ?? ''}`);
}

function isTargetGone(migration: MigrationState, view: VmiView): boolean {
  const pod = view.launchers.find((launcher) => launcher.metadata.name === migration.targetPod);
  return pod !== undefined && (isBeingDeleted(pod) || isTerminal(pod));
}

function withMigration(vmi: Vmi, changes: MigrationState): Vmi {
  return withStatus(vmi, { migrationState: { ...vmi.status?.migrationState, ...changes } });
}

function domainOnTarget(vmi: Vmi): Vmi {
  return withMigration(vmi, { targetNodeDomainDetected: true });
}

/** Earlier, virt-controller would end a migration of its own that is no longer required. */
function runningOnTarget(vmi: Vmi, now: number): Vmi {
  const targetNodeDomainReadyTimestamp = vmi.status?.migrationState?.targetNodeDomainReadyTimestamp ?? timestamp(now);
  return withoutCondition(withMigration(vmi, { targetNodeDomainReadyTimestamp }), 'MigrationRequired');
}

function failed(vmi: Vmi, now: number, failureReason: string, more: MigrationState = {}): Vmi {
  const time = timestamp(now);
  const startTimestamp = vmi.status?.migrationState?.startTimestamp ?? time;
  return withMigration(vmi, {
    ...more,
    startTimestamp,
    endTimestamp: time,
    failed: true,
    completed: true,
    failureReason,
  });
}

function completed(vmi: Vmi, migration: MigrationState, now: number): Vmi {
  const node = migration.targetNode ?? '';
  const { evacuationNodeName: _done, ...status } = vmi.status ?? {};
  const { [OUTDATED_LABEL]: _renewed, ...labels } = vmi.metadata.labels ?? {};
  const moved = { ...vmi, metadata: { ...vmi.metadata, labels: { ...labels, [NODE_NAME_LABEL]: node } }, status };
  const ended = { endTimestamp: timestamp(now), completed: true };
  return withStatus(withMigration(runningOnTarget(moved, now), ended), {
    nodeName: node,
    migrationTransport: 'Unix',
    launcherContainerImageVersion: '', // virt-controller sets it to that of the target's pod
  });
}

function withoutCondition(vmi: Vmi, type: string): Vmi {
  const conditions: VmiCondition[] = vmi.status?.conditions ?? [];
  return withStatus(vmi, { conditions: conditions.filter((condition) => condition.type !== type) });
}
