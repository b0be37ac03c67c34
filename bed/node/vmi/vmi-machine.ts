import { isDeepStrictEqual } from 'node:util';
import { isBeingDeleted } from '../../../api/meta.js';
import { isTerminal } from '../../../api/pod.js';
import { guestInterfaces } from './guest-interfaces.js';
import { stepMigration } from './migration-machine.js';
import { reportedAttachments } from './network-status.js';
import type { KubeletPod } from '../pod.js';
import { change, waitFor, type Step } from '../step.js';
import {
  hasGuest,
  inPhase,
  migrationInFlight,
  withCondition,
  withStatus,
  withSyncError,
  type GuestInterface,
  type Vmi,
} from './virtual-machine-instance.js';
import type { VmiView } from './vmi-view.js';

/** How often the report of the guest agent is read. */
const AGENT_INTERVAL_MS = 500;

/**
 * One step of virt-handler with one VMI:
 *
 *     Pending → Scheduling → Scheduled      virt-controller creates the launcher
 *     Scheduled → Running                   the guest starts
 *     Running                               interfaces come and go; live migrations
 *     Scheduled, Running → Succeeded        asked to shut down, or the launcher is killed (→ Failed by switch)
 *
 * See https://kubevirt.io/user-guide/user_workloads/lifecycle and the doc comments of VirtualMachineInstancePhase.
 */
export function stepVmi(vmi: Vmi, view: VmiView): Step<Vmi> {
  const node = vmi.status?.nodeName;
  if (!hasGuest(vmi) || node === undefined) return waitFor('virt-controller');
  if (!view.isNodeUp(node)) return waitFor(`node ${node} to come back`);
  if (isBeingDeleted(vmi)) {
    if (view.switches.holdTermination) return waitFor('the guest to shut down, which is held');
    return change(inPhase(vmi, 'Succeeded', view.now), 'the guest shut down');
  }
  return (
    stepLauncher(vmi, node, view) ?? (vmi.status?.phase === 'Scheduled' ? start(vmi, view) : stepRunning(vmi, view))
  );
}

/** Ends the guest if its launcher pod has ended, or QEMU in it. */
function stepLauncher(vmi: Vmi, node: string, view: VmiView): Step<Vmi> | undefined {
  if (hasLeft(vmi, view)) return undefined;
  const here = view.launchers.filter((pod) => pod.spec?.nodeName === node && !isTerminal(pod));
  const ended = here.find((pod) => exitCodeOf(pod) !== undefined);
  if (here.some((pod) => !isBeingDeleted(pod) && exitCodeOf(pod) === undefined)) return undefined;
  const hasFailed = ended !== undefined && exitCodeOf(ended) !== 0;
  const phase = hasFailed ? 'Failed' : 'Succeeded';
  if (ended) return change(inPhase(vmi, phase, view.now), `the guest ended: ${phase}`);
  if (here.length > 0) {
    if (view.switches.holdTermination) return waitFor('the guest to shut down, which is held');
    return change(inPhase(vmi, phase, view.now), 'the launcher was killed');
  }
  return change(inPhase(vmi, phase, view.now), 'the launcher is gone');
}

/** The source of a migration ends shortly before the VMI says that the guest has moved. */
function hasLeft(vmi: Vmi, { launchers }: VmiView): boolean {
  const { sourcePod, startTimestamp } = migrationInFlight(vmi) ?? {};
  const source = launchers.find((pod) => pod.metadata.name === sourcePod);
  return startTimestamp !== undefined && source !== undefined && exitCodeOf(source) === 0;
}

/** That of virt-launcher's process, which ends with the guest: other containers of its pod end later. */
function exitCodeOf({ status }: KubeletPod): number | undefined {
  return status?.containerStatuses?.find(({ name }) => name === 'compute')?.state?.terminated?.exitCode;
}

/** The launcher in which the guest runs. */
export function launcherOf(vmi: Vmi, launchers: readonly KubeletPod[]): KubeletPod | undefined {
  return launchers.find((pod) => pod.spec?.nodeName === vmi.status?.nodeName && !isTerminal(pod));
}

function interfacesOf(vmi: Vmi, { launchers, agent }: VmiView): GuestInterface[] {
  const launcher = launcherOf(vmi, launchers);
  return guestInterfaces(vmi, launcher && reportedAttachments(launcher), agent);
}

function start(vmi: Vmi, view: VmiView): Step<Vmi> {
  const { now, startError } = view;
  const synced = withSyncError(vmi, startError, now);
  if (startError !== undefined)
    return synced === vmi ? waitFor('another launcher') : change(synced, `the guest cannot start: ${startError}`);
  const started = withStatus(inPhase(synced, 'Running', now), {
    interfaces: interfacesOf(vmi, view),
    selinuxContext: 'none', // virt-controller creates no migration target without it
  });
  return change(
    withCondition(withCondition(started, 'LiveMigratable', now), 'StorageLiveMigratable', now),
    'the guest runs',
  );
}

function stepRunning(vmi: Vmi, view: VmiView): Step<Vmi> {
  const migration = migrationInFlight(vmi);
  // virt-handler changes no interfaces of a guest while the guest is copied
  if (migration?.startTimestamp !== undefined) return stepMigration(vmi, migration, view);
  const interfaces = interfacesOf(vmi, view);
  if (!isDeepStrictEqual(interfaces, vmi.status?.interfaces ?? [])) {
    const sources = interfaces.map(({ name, infoSource }) => `${name ?? ''} (${infoSource ?? ''})`);
    return change(withStatus(vmi, { interfaces }), `interfaces: ${sources.join(', ') || 'none'}`);
  }
  return migration ? stepMigration(vmi, migration, view) : waitFor('something to do', view.agent && AGENT_INTERVAL_MS);
}
