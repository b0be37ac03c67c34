import { type IPAMClaim, labelValue } from '../../api/ipam-claim.js';
import { secondaryNetworks } from '../../api/kubevirt.js';
import { isBeingDeleted, joinKey, objectKey } from '../../api/meta.js';
import { CLAIM_VM_LABEL } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import { unnotedClaimNames } from '../../api/vm-claims.js';
import { StatusError } from '../../kube/errors.js';
import type { Event } from '../../kube/events.js';
import { type ComponentState, componentsOf } from '../installation.js';
import type { Read, Unread } from '../reader.js';
import { isOptedOut } from '../trace/networks.js';
import type { ObservedVmTrace, TracedVm } from '../trace/observed.js';
import { traceVm } from '../trace/trace.js';
import { oldestKubeVirt } from './check-admission.js';
import { shorten } from './check-addressing.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

const refusal = new StatusError({ request: 'GET', status: 403, reason: 'Forbidden', message: '' });
/** A part of the story that the doctor does not read for each VM. */
const NOT_READ: Unread = { kind: 'forbidden', why: 'not read', error: refusal };
const ABSENT: Unread = { ...NOT_READ, kind: 'absent' };

/** VMs with an interface that gets no address, or none that persists: what `kubectl holdfast trace vm` says about their networks. */
export function checkVms(observed: ObservedCluster): Finding[] {
  const { vms = [], claims, nads, namespaces, narrowed, onlyNamespace, now } = observed;
  if (claims === undefined || now === undefined) return [];
  const gate = persistentIpsGate(observed);
  const nadByKey = nads && new Map(nads.map((nad) => [objectKey(nad), nad]));
  const namespaceByName = new Map(namespaces?.map((each) => [each.metadata.name, each]));
  const claimsByVm = groupClaims(claims);
  const isInView = ({ metadata: { namespace } }: TracedVm) =>
    narrowed?.includes('claims') !== true || namespace === onlyNamespace;
  const findings = vms
    .filter((vm) => isInView(vm) && !isBeingDeleted(vm))
    .flatMap((vm) => {
      const { namespace = '', name } = vm.metadata;
      const object = namespaceByName.get(namespace);
      const namespaceObject = object === undefined ? NOT_READ : found(object);
      if (isOptedOut({ namespaceObject })) return [];
      return findingsOf(vm, {
        ...{ namespace, name, now, namespaceObject, vm: found(vm), agents: new Map(), pods: found([]) },
        ...{ vmi: NOT_READ, pools: NOT_READ, leases: NOT_READ, isGateUnknown: gate.state === 'unknown' },
        events: readEvents(vm, observed),
        claims: found(claimsOf(vm, claimsByVm)),
        nads: readNads(vm, nadByKey, narrowed?.includes('nads') ? onlyNamespace : undefined),
      });
    });
  if (gate.state !== 'closed') return shorten('vms', 'VirtualMachines', findings);
  return findings.length === 0 ? [] : [closedGateFinding(gate.controller)];
}

function findingsOf({ metadata: { namespace = '', name } }: TracedVm, observed: ObservedVmTrace): Finding[] {
  const tree = traceVm(observed);
  const nodes = tree === undefined ? [] : [tree, ...tree.children.filter(({ kind }) => kind === 'Network')];
  return nodes.flatMap((node) =>
    node.findings.flatMap(({ health, reason, message, remedy }) => {
      if (health !== 'wrong' && health !== 'warning') return [];
      const network = node === tree ? '' : `network "${node.name}": `;
      const problem = `${network}${reason === undefined ? '' : `${reason}: `}${message}`;
      const what = remedy ?? `kubectl holdfast trace vm ${name} -n ${namespace}`;
      const isWrong = health === 'wrong';
      return [(isWrong ? errorOf : warningOf)('vms', `VirtualMachine ${joinKey(namespace, name)}`, problem, what)];
    }),
  );
}

/** Whether the controller creates claims, as far as the user may know; the gate is open by default. */
type GateState =
  { readonly state: 'open' | 'unknown' } | { readonly state: 'closed'; readonly controller: ComponentState };

function persistentIpsGate(observed: ObservedCluster): GateState {
  const controller = componentsOf(observed).find(({ name }) => name === 'controller' || name === 'all');
  if (controller === undefined) return { state: 'open' };
  const closed: GateState = { state: 'closed', controller };
  if (!controller.areGatesOfKubeVirt)
    return /\bPersistentIPs\s*=\s*false\b/.test(controller.gates) ? closed : { state: 'open' };
  if (observed.kubevirts === undefined) return { state: 'unknown' };
  const gates = oldestKubeVirt(observed.kubevirts)?.spec?.configuration?.developerConfiguration?.featureGates;
  return gates?.includes('PersistentIPs') ? { state: 'open' } : closed;
}

function closedGateFinding({ namespace, workload, areGatesOfKubeVirt }: ComponentState): Finding {
  const problem =
    'the feature gate PersistentIPs is closed: VMs get no new IPAMClaims, so they do not keep their addresses';
  const remedy = areGatesOfKubeVirt
    ? 'add PersistentIPs to the feature gates of the KubeVirt object, or remove --feature-gates-from-kubevirt'
    : 'remove PersistentIPs=false from --feature-gates';
  return warningOf('vms', `Deployment ${joinKey(namespace, workload)}`, problem, remedy);
}

/** The doctor reads the events of one namespace only. */
function readEvents({ metadata }: TracedVm, { events, onlyNamespace }: ObservedCluster): Read<readonly Event[]> {
  const { namespace = '', name } = metadata;
  if (events === undefined || namespace !== onlyNamespace)
    return { ...NOT_READ, why: `kubectl holdfast trace vm ${name} -n ${namespace} shows why` };
  return found(events.filter(({ involvedObject }) => involvedObject.name === name));
}

function found<T>(value: T): Read<T> {
  return { kind: 'found', value };
}

/** By namespace and label, and by namespace and name. */
function groupClaims(claims: readonly IPAMClaim[]): ReadonlyMap<string, readonly IPAMClaim[]> {
  const groups = new Map<string, IPAMClaim[]>();
  for (const claim of claims) {
    const { namespace = '', name, labels } = claim.metadata;
    for (const key of [`${namespace} ${labels?.[CLAIM_VM_LABEL] ?? ''}`, joinKey(namespace, name)]) {
      const group = groups.get(key);
      if (group === undefined) groups.set(key, [claim]);
      else group.push(claim);
    }
  }
  return groups;
}

function claimsOf(vm: TracedVm, groups: ReadonlyMap<string, readonly IPAMClaim[]>): IPAMClaim[] {
  const { namespace = '', name } = vm.metadata;
  const networks = vm.spec?.template?.spec?.networks ?? [];
  const names = networks.flatMap((network) => unnotedClaimNames(name, network.name));
  const keys = [`${namespace} ${labelValue(name)}`, ...names.map((each) => joinKey(namespace, each))];
  return [...new Set(keys.flatMap((key) => groups.get(key) ?? []))];
}

function readNads(
  { metadata: { namespace = '' }, spec }: TracedVm,
  nads: ReadonlyMap<string, NetworkAttachmentDefinition> | undefined,
  onlyNamespace: string | undefined,
): ReadonlyMap<string, Read<NetworkAttachmentDefinition>> {
  const networks = [...secondaryNetworks(spec?.template?.spec, namespace)];
  return new Map(
    networks.map(({ nad: ref }) => {
      const key = joinKey(ref.namespace, ref.name);
      const nad = nads?.get(key);
      const isVisible = nads !== undefined && (onlyNamespace === undefined || ref.namespace === onlyNamespace);
      return [key, nad === undefined ? (isVisible ? ABSENT : NOT_READ) : found(nad)];
    }),
  );
}
