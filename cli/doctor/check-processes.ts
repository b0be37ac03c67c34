import { type AddressPool, isAdminPool } from '../../api/address-pool.js';
import { labelValue } from '../../api/ipam-claim.js';
import { nameFirst, truncate } from '../../api/json.js';
import { type KubeObject, isBeingDeleted, objectKey } from '../../api/meta.js';
import { deliveryOf } from '../../api/networks/nad-guests.js';
import { IPS_ALLOCATED, LEASE_POOL, RESPONDERS_NAMESPACE } from '../../api/names.js';
import { parseNetworkConfig } from '../../api/networks/network-attachment.js';
import { attachmentProblem } from '../../api/responders.js';
import { docsUrl } from '../../process/docs-url.js';
import {
  type ComponentState,
  type InstalledWorkload,
  type ProcessPod,
  componentsOf,
  isReady,
} from '../installation.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import { type ObservedCluster, inAllNamespaces } from './observe.js';

const INSTALL = `apply the manifests of this version: ${docsUrl('how-to/install.md')}`;
/** As the election counts it, with time for a renewal. */
const LEADER_SILENT_MS = 30_000;
const ELECTED_IN_ALL: readonly string[] = ['controller', 'ipam', 'guest'];
const MAX_MESSAGE_LENGTH = 300;
const MAX_POOLS = 5;

/** Processes that are missing, not ready, without a leader, or of versions that do not work together. */
export function checkProcesses(observed: ObservedCluster, clientVersion: string): Finding[] {
  if (observed.workloads === undefined) return [];
  const components = componentsOf(observed);
  return [
    ...checkPresence(components.map(({ name }) => name)),
    ...checkGuest(observed, components),
    ...checkCapacity(observed, components),
    ...components.flatMap(checkReadiness),
    ...checkLeaders(observed, components),
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

/** Pools whose guests would get their addresses by DHCP, router advertisements or network data. */
function checkGuest({ pools = [] }: ObservedCluster, components: readonly ComponentState[]): Finding[] {
  if (components.some(({ name }) => name === 'guest' || name === 'all')) return [];
  const served = pools
    .filter((pool) => isDhcpPool(pool) || (isAdminPool(pool) && pool.spec.guest?.networkData?.default === true))
    .map(({ metadata }) => metadata.name);
  if (served.length === 0) return [];
  const problem = `no workload of the component guest exists, so guests of AddressPool ${nameFirst(served, MAX_POOLS)} are told no addresses`;
  return [errorOf('processes', 'holdfast-guest', problem, INSTALL)];
}

function checkCapacity({ pools = [] }: ObservedCluster, components: readonly ComponentState[]): Finding[] {
  if (components.some(({ name, gates }) => name === 'capacity' && !gates.includes('PublishCapacity=false'))) return [];
  const shown = pools.filter(({ spec }) => spec.publishCapacity === true).map(({ metadata }) => metadata.name);
  if (shown.length === 0) return [];
  const problem = `no workload of the component capacity publishes addresses, so the scheduler does not see those of AddressPool ${nameFirst(shown, MAX_POOLS)}`;
  const remedy = `install it, with the gate PublishCapacity, or remove publishCapacity: ${docsUrl('how-to/scheduler-visible-addresses.md')}`;
  return [warningOf('processes', 'holdfast-capacity', problem, remedy)];
}

function checkReadiness({ name, workload, namespace, ready, wanted, pods }: ComponentState): Finding[] {
  const kind = name === 'agent' ? 'DaemonSet' : 'Deployment';
  const object = `${kind} ${namespace}/${workload}`;
  if (wanted === 0) {
    const [problem, remedy] =
      name === 'agent'
        ? ['no node runs an agent', 'check nodeSelector and tolerations of the DaemonSet']
        : ['has 0 replicas', `run kubectl -n ${namespace} scale deployment ${workload} --replicas=2`];
    return [errorOf('processes', object, problem, remedy)];
  }
  if (ready >= wanted) return [];
  const problem = `${ready} of ${wanted} pods are ready${describeUnready(pods)}`;
  const folder =
    name === 'agent' ? `; if they name the CNI folder, see ${docsUrl('how-to/install.md#adapt-the-nodes')}` : '';
  return [errorOf('processes', object, problem, `${seePods(namespace)}${folder}`)];
}

function seePods(namespace: string): string {
  return `run kubectl -n ${namespace} describe pod and kubectl logs for these pods`;
}

function describeUnready(pods: readonly ProcessPod[]): string {
  const unready = pods.filter((pod) => !isReady(pod)).map(describePod);
  return unready.length === 0 ? '' : `: ${nameFirst(unready, 3, unready.length, '; ')}`;
}

function describePod({ metadata: { name }, spec, status = {} }: ProcessPod): string {
  const { initContainerStatuses = [], containerStatuses = [], phase = 'Unknown' } = status;
  const states = [...initContainerStatuses, ...containerStatuses].flatMap(({ state = {}, lastState = {} }) => {
    const { waiting } = state;
    return waiting === undefined ? [] : [{ ...waiting, ended: lastState.terminated?.message }];
  });
  const [{ reason = phase, message = '', ended = message } = {}] = states;
  const node = spec?.nodeName === undefined ? '' : ` on node ${spec.nodeName}`;
  return `${name}${node} is ${reason}${ended === '' ? '' : ` (${truncate(ended.trim(), MAX_MESSAGE_LENGTH)})`}`;
}

/** A process that is removed leaves its Lease. */
function checkLeaders({ leaders, now }: ObservedCluster, components: readonly ComponentState[]): Finding[] {
  if (leaders === undefined || now === undefined) return [];
  const names = new Set(components.flatMap(({ name }) => (name === 'all' ? ELECTED_IN_ALL : name)));
  const found = leaders.flatMap((lease) => {
    if (!names.has(lease.metadata.name.replace('holdfast-', ''))) return [];
    const object = `Lease ${objectKey(lease)}`;
    const { holderIdentity = '', renewTime = '' } = lease.spec ?? {};
    const remedy = 'look at the logs of its candidates: one of them must reach the API server';
    if (holderIdentity === '') return [errorOf('leaders', object, 'has no leader', remedy)];
    const age = now - Date.parse(renewTime);
    if (!(age > LEADER_SILENT_MS)) return [];
    const seconds = Math.round(age / 1000);
    return [errorOf('leaders', object, `${holderIdentity} has not renewed it for ${seconds} s`, remedy)];
  });
  return [...found, ...components.flatMap((component) => checkAbsentLeases(component, leaders))];
}

/** A process whose pods are ready creates its Lease within seconds, if it may. */
function checkAbsentLeases(
  { name, namespace, ready, electsLeader }: ComponentState,
  leaders: readonly KubeObject[],
): Finding[] {
  if (ready === 0 || !electsLeader) return [];
  return (name === 'all' ? ELECTED_IN_ALL : [name])
    .filter((each) => !leaders.some(({ metadata }) => metadata.name === `holdfast-${each}`))
    .map((each) => {
      const remedy = 'see the log of its pods: if it says forbidden, apply manifests/base/*/rbac';
      return errorOf('leaders', `Lease ${namespace}/holdfast-${each}`, 'does not exist, so no pod leads', remedy);
    });
}

function checkVersions(components: readonly ComponentState[], clientVersion: string): Finding[] {
  const known = components.flatMap(({ name, versions }) =>
    versions.filter((version) => version !== 'unknown').map((version) => ({ name, version })),
  );
  const newest = known
    .map(({ version }) => version)
    .sort((a, b) => minorOf(a) - minorOf(b))
    .at(-1);
  if (newest === undefined) return [];
  const apart = `${newest}: they are more than one minor version apart`;
  const found = known.flatMap(({ name, version }) => {
    if (!differs(version, newest)) return [];
    const remedy = `upgrade one minor version at a time: ${docsUrl('how-to/upgrade.md')}`;
    return [errorOf('versions', `holdfast-${name}`, `runs ${version}, and another process runs ${apart}`, remedy)];
  });
  if (!differs(clientVersion, newest)) return found;
  const problem = `is ${clientVersion}, and the processes run ${apart}`;
  const remedy = 'install the plugin of the version of the processes';
  return [...found, warningOf('versions', 'kubectl holdfast', problem, remedy)];
}

/** As one number: a minor version has at most six digits. */
function minorOf(version: string): number {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major * 1e6 + minor;
}

function differs(a: string, b: string): boolean {
  return Math.abs(minorOf(a) - minorOf(b)) > 1;
}

const GUIDE = docsUrl('how-to/layer-2-networks.md#answer-dhcp');

/** Pools with `spec.guest.dhcp` whose guests get no answer, or only that of one responder. */
export function checkResponders(observed: ObservedCluster): Finding[] {
  const { pools = [], responderSets } = observed;
  if (responderSets === undefined) return [];
  const served = pools.filter(isDhcpPool);
  const setOf = ({ metadata: { name } }: AddressPool) =>
    responderSets.find(({ metadata }) => metadata.labels?.[LEASE_POOL] === labelValue(name));
  return served
    .filter((pool) => !isBeingDeleted(pool))
    .flatMap((pool) => {
      const set = setOf(pool);
      const attachment = checkAttachment(pool, observed);
      if (set !== undefined) return [...attachment, ...checkSet(set, pool, observed)];
      if (attachment.length > 0) return attachment;
      const other = served.find((each) => each.spec.network === pool.spec.network && setOf(each) !== undefined);
      return [missingSet(pool, other)];
    });
}

/** In a derived pool, `spec.guest` has no effect. */
function isDhcpPool(pool: AddressPool): boolean {
  return isAdminPool(pool) && pool.spec.guest?.dhcp !== undefined;
}

function checkAttachment({ metadata, spec }: AddressPool, observed: ObservedCluster): Finding[] {
  const nads = inAllNamespaces(observed, 'nads');
  if (nads === undefined) return [];
  const key = `${RESPONDERS_NAMESPACE}/${spec.guest?.attachment ?? ''}`;
  const nad = nads.find((each) => objectKey(each) === key);
  const parsed = nad && { config: parseNetworkConfig(nad), delivery: deliveryOf(nad) };
  const problem = attachmentProblem(parsed, spec.network);
  if (problem === undefined) return [];
  const object = `AddressPool ${metadata.name}`;
  const text = `NetworkAttachmentDefinition ${key}, which spec.guest.attachment names, ${problem}`;
  return [errorOf('responders', object, text, `create or correct the NAD: ${GUIDE}`)];
}

function missingSet({ metadata, spec }: AddressPool, other: AddressPool | undefined): Finding {
  const object = `AddressPool ${metadata.name}`;
  if (other === undefined) {
    const remedy = `look at the events of the pool, and check that holdfast-guest is ready`;
    return errorOf('responders', object, `no StatefulSet in ${RESPONDERS_NAMESPACE} answers DHCP for it`, remedy);
  }
  const problem = `its guests get no answer: the responders of network ${spec.network} are those of AddressPool ${other.metadata.name}`;
  return errorOf('responders', object, problem, 'serve the guests of both from one pool');
}

function checkSet(set: InstalledWorkload, pool: AddressPool, observed: ObservedCluster): Finding[] {
  const { namespace = '', name } = set.metadata;
  const { readyReplicas: ready = 0 } = set.status ?? {};
  const replicas = set.spec?.replicas ?? 0;
  const names = Array.from({ length: replicas }, (_, ordinal) => `${name}-${ordinal}`);
  const claims = names.flatMap((each) => checkClaim(each, pool, observed));
  if (ready >= replicas) return claims;
  const pods = describeUnready((observed.pods ?? []).filter(({ metadata }) => names.includes(metadata.name)));
  const problem = `${ready} of ${replicas} responders of AddressPool ${pool.metadata.name} are ready${pods}`;
  const [findingOf, remedy] = [ready === 0 ? errorOf : warningOf, `${seePods(namespace)}. They need two nodes`];
  return [findingOf('responders', `StatefulSet ${namespace}/${name}`, problem, remedy), ...claims];
}

/** Each responder answers DHCPv4 from an address of its own. */
function checkClaim(name: string, pool: AddressPool, observed: ObservedCluster): Finding[] {
  const claims = inAllNamespaces(observed, 'claims');
  if (claims === undefined) return [];
  const key = `${RESPONDERS_NAMESPACE}/${name}`;
  const { status } = claims.find((each) => objectKey(each) === key) ?? {};
  if ((status?.ips?.length ?? 0) > 0) return [];
  const refusal = status?.conditions?.find(({ type, status: value }) => type === IPS_ALLOCATED && value === 'False');
  const problem = 'the responder has no address of its own, so it does not answer DHCPv4';
  const remedy = refusal
    ? `add a range to AddressPool ${pool.metadata.name}, or delete VMs that are no longer needed`
    : 'check that holdfast-guest, which creates the claim, and holdfast-ipam are ready';
  const why = refusal ? `: ${refusal.message}` : '';
  return [warningOf('responders', `IPAMClaim ${key}`, `${problem}${why}`, remedy)];
}
