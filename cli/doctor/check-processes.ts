import { truncate } from '../../api/json.js';
import { objectKey } from '../../api/meta.js';
import { type ComponentState, type ProcessPod, componentsOf } from '../installation.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

const INSTALL = 'apply the manifests of this version: docs/how-to/install.md';
/** As the election counts it, with time for a renewal. */
const LEADER_SILENT_MS = 30_000;
const MAX_MESSAGE_LENGTH = 300;

/** Processes that are missing, not ready, without a leader, or of versions that do not work together. */
export function checkProcesses(observed: ObservedCluster, clientVersion: string): Finding[] {
  if (observed.workloads === undefined) return [];
  const components = componentsOf(observed);
  return [
    ...checkPresence(components.map(({ name }) => name)),
    ...components.flatMap(checkReadiness),
    ...checkLeaders(observed),
    ...checkVersions(components, clientVersion),
  ];
}

function checkPresence(names: readonly string[]): Finding[] {
  const has = (name: string) => names.includes(name);
  const missing = [
    ...(has('all') ? [] : ['controller', 'webhook'].filter((name) => !has(name))),
    // a cluster with another IPAM has neither
    ...((has('ipam') || has('all')) && !has('agent') ? ['agent'] : []),
    ...(has('agent') && !has('ipam') && !has('all') ? ['ipam'] : []),
  ];
  return missing.map((name) =>
    errorOf('processes', `holdfast-${name}`, `no workload of the component ${name} exists`, INSTALL),
  );
}

function checkReadiness({ name, workload, namespace, ready, wanted, pods }: ComponentState): Finding[] {
  const kind = name === 'agent' ? 'DaemonSet' : 'Deployment';
  const object = `${kind} ${namespace}/${workload}`;
  if (wanted === 0)
    return name === 'agent'
      ? [errorOf('processes', object, 'no node runs an agent', 'check nodeSelector and tolerations of the DaemonSet')]
      : [
          errorOf(
            'processes',
            object,
            'has 0 replicas',
            `run kubectl -n ${namespace} scale deployment ${workload} --replicas=2`,
          ),
        ];
  if (ready >= wanted) return [];
  const unready = pods.filter((pod) => !isReady(pod));
  const shown = unready.slice(0, 3).map(describePod).join('; ');
  const more = unready.length > 3 ? ` and ${unready.length - 3} more` : '';
  const problem = `${ready} of ${wanted} pods are ready${shown === '' ? '' : `: ${shown}${more}`}`;
  const remedy =
    name === 'agent'
      ? `run kubectl -n ${namespace} describe pod and kubectl logs for these pods; if they name the CNI folder, see docs/how-to/install.md#adapt-the-nodes`
      : `run kubectl -n ${namespace} describe pod and kubectl logs for these pods`;
  return [errorOf('processes', object, problem, remedy)];
}

export function isReady({ status }: ProcessPod): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}

export function describePod({ metadata: { name }, spec, status = {} }: ProcessPod): string {
  const { initContainerStatuses = [], containerStatuses = [], phase = 'Unknown' } = status;
  const states = [...initContainerStatuses, ...containerStatuses].flatMap(({ state = {}, lastState = {} }) => {
    const { waiting } = state;
    return waiting === undefined ? [] : [{ ...waiting, ended: lastState.terminated?.message }];
  });
  const [{ reason = phase, message = '', ended = message } = {}] = states;
  const node = spec?.nodeName === undefined ? '' : ` on node ${spec.nodeName}`;
  return `${name}${node} is ${reason}${ended === '' ? '' : ` (${truncate(ended.trim(), MAX_MESSAGE_LENGTH)})`}`;
}

function checkLeaders({ leaders, now }: ObservedCluster): Finding[] {
  if (leaders === undefined || now === undefined) return [];
  return leaders.flatMap((lease) => {
    const object = `Lease ${objectKey(lease)}`;
    const { holderIdentity = '', renewTime = '' } = lease.spec ?? {};
    const remedy = 'look at the logs of its candidates: one of them must reach the API server';
    if (holderIdentity === '') return [errorOf('leaders', object, 'has no leader', remedy)];
    const age = now - Date.parse(renewTime);
    if (!(age > LEADER_SILENT_MS)) return [];
    const seconds = Math.round(age / 1000);
    return [errorOf('leaders', object, `${holderIdentity} has not renewed it for ${seconds} s`, remedy)];
  });
}

function checkVersions(components: readonly ComponentState[], clientVersion: string): Finding[] {
  const known = components.flatMap(({ name, versions }) =>
    versions.filter((version) => version !== 'unknown').map((version) => ({ name, version })),
  );
  const newest = known
    .map(({ version }) => version)
    .sort(compareMinor)
    .at(-1);
  if (newest === undefined) return [];
  const skewed = known.filter(({ version }) => differs(version, newest));
  return [
    ...skewed.map(({ name, version }) =>
      errorOf(
        'versions',
        `holdfast-${name}`,
        `runs ${version}, and another process runs ${newest}: they are more than one minor version apart`,
        'upgrade one minor version at a time: docs/how-to/upgrade.md',
      ),
    ),
    ...(differs(clientVersion, newest)
      ? [
          warningOf(
            'versions',
            'kubectl holdfast',
            `is ${clientVersion}, and the processes run ${newest}: they are more than one minor version apart`,
            'install the plugin of the version of the processes',
          ),
        ]
      : []),
  ];
}

function minorOf(version: string): [number, number] {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return [major, minor];
}

function compareMinor(a: string, b: string): number {
  const [[aMajor, aMinor], [bMajor, bMinor]] = [minorOf(a), minorOf(b)];
  return aMajor - bMajor || aMinor - bMinor;
}

function differs(a: string, b: string): boolean {
  const [[aMajor, aMinor], [bMajor, bMinor]] = [minorOf(a), minorOf(b)];
  return aMajor !== bMajor || Math.abs(aMinor - bMinor) > 1;
}
