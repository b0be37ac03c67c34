import type { CheckReport } from '../doctor/check-report.js';
import { checkKubeVirt, checkKubernetes, checkMultus, checkPluginFolder } from './check-platform.js';
import { checkInstallation, checkOtherIpams, checkObstacles, checkPorts } from './check-surroundings.js';
import { checkMacAddresses, checkNetworks, checkVirtualMachines } from './check-workloads.js';
import type { ObservedTarget } from './observe.js';

const CHECKS: readonly ((observed: ObservedTarget) => CheckReport)[] = [
  ...[checkInstallation, checkKubernetes, checkKubeVirt, checkMultus, checkPluginFolder],
  ...[checkPorts, checkObstacles, checkOtherIpams, checkNetworks, checkVirtualMachines, checkMacAddresses],
];

/** Finds what stands in the way of an installation, and what it changes. */
export function preflight(observed: ObservedTarget): CheckReport[] {
  return CHECKS.map((check) => check(observed));
}
