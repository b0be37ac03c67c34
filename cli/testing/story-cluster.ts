import { textOf } from '../terminal.js';
import { diagnose } from '../doctor/diagnose.js';
import { type Finding, reportOf } from '../doctor/finding.js';
import type { ObservedCluster } from '../doctor/observe.js';
import type { Read } from '../reader.js';
import { formatStatus, statusOf } from '../status.js';
import type { ObservedVmTrace } from '../trace/observed.js';
import type { TraceFinding, TraceNode } from '../trace/tree.js';
import { findingRow } from '../ui/rows.js';
import { HEALTHY } from './healthy-cluster.js';

/** The cluster in which the story of a VM happens, as the doctor, `status` and the web page observe it. */
function clusterOf(observed: ObservedVmTrace): ObservedCluster {
  const { vm, claims, nads, namespaceObject, events, pods, pools, now } = observed;
  const valueOf = <T>(read: Read<T>) => (read.kind === 'found' ? read.value : undefined);
  const isUnread = [...nads.values()].some(({ kind }) => kind !== 'found' && kind !== 'absent');
  return {
    ...HEALTHY,
    now,
    vms: listOf(vm),
    namespaces: listOf(namespaceObject),
    nads: isUnread ? undefined : [...nads.values()].flatMap(listOf),
    claims: valueOf(claims),
    events: valueOf(events)?.filter(({ involvedObject }) => involvedObject.name === observed.name),
    launchers: valueOf(pods),
    pools: valueOf(pools),
  };
}

function listOf<T>(read: Read<T>): T[] {
  return read.kind === 'found' ? [read.value] : [];
}

const PARTS = ['VirtualMachine', 'Network', 'IPAMClaim'];

/** What `trace` says about the networks and claims of a VM, and somebody should do something about. */
export function actionableFindings({ kind, findings, children }: TraceNode): TraceFinding[] {
  if (!PARTS.includes(kind)) return [];
  const own = findings.filter(({ health }) => health === 'wrong' || health === 'warning');
  return [...own, ...children.flatMap(actionableFindings)];
}

/** What the other tools say about the VM of a story, by tool. */
export function toldByTools(observed: ObservedVmTrace): Readonly<Record<string, string>> {
  const cluster = clusterOf(observed);
  const findings = diagnose(cluster, '0.1.0').filter(({ check }) => check === 'vms' || check === 'claims');
  const textsOf = ({ lines }: ReturnType<typeof reportOf>) => lines(false).map(textOf).join('\n');
  const rowText = (finding: Finding) => Object.values(findingRow(finding)).join('\n');
  return {
    doctor: textsOf(reportOf(findings, cluster)),
    status: textsOf(formatStatus(statusOf(cluster, findings, '0.1.0'))),
    page: findings.map(rowText).join('\n'),
  };
}
