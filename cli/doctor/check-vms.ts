import { type IPAMClaim, claimNadOf, claimOwnerOf } from '../../api/ipam-claim.js';
import { controllerOf, isBeingDeleted, joinKey, objectKey } from '../../api/meta.js';
import { IPAM_CLAIM_KIND, VIRTUAL_MACHINE_KIND } from '../../api/names.js';
import { groupBy } from '../group-by.js';
import { type ComponentState, componentsOf } from '../installation.js';
import { count } from '../output.js';
import { traceClaim } from '../trace/claims.js';
import { readNad } from '../trace/networks.js';
import { traceVm } from '../trace/trace.js';
import type { TraceFinding, TraceNode } from '../trace/tree.js';
import { oldestKubeVirt } from './check-admission.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';
import { VmParts } from './vm-parts.js';

/** What is wrong with the networks and claims of VMs, as `kubectl holdfast trace vm` says it. Each VM and claim is a step. */
export function* checkVms(observed: ObservedCluster): Generator<undefined, Finding[]> {
  const { vms = [], claims, now } = observed;
  if (claims === undefined || now === undefined) return [];
  const gate = persistentIpsGate(observed);
  const parts = new VmParts(observed, gate.state === 'unknown');
  const findings: Finding[] = [];
  const ofClaims: Finding[] = [];
  for (const vm of vms) {
    if (parts.isTold(vm) && !isBeingDeleted(vm))
      findings.push(...findingsIn(traceVm(parts.ofVm(vm)), `${VIRTUAL_MACHINE_KIND} ${objectKey(vm)}`));
    yield;
  }
  for (const claim of claims) {
    if (!parts.isTraced(claim)) ofClaims.push(...findingsOf(claim, parts));
    yield;
  }
  ofClaims.push(...checkNamespacesOf(claims, observed));
  if (gate.state !== 'closed' || findings.every(isOfClaim)) return [...findings, ...ofClaims];
  return [...findings.filter(isOfClaim), ...ofClaims, closedGateFinding(gate.controller)];
}

/** Somebody removed the finalizers of these namespaces, or the namespace controller did not know all kinds when it emptied them. */
function checkNamespacesOf(
  claims: readonly IPAMClaim[],
  { namespaces, onlyNamespace }: ObservedCluster,
): readonly Finding[] {
  if (namespaces === undefined || onlyNamespace !== undefined) return [];
  const existing = new Set(namespaces.map(({ metadata }) => metadata.name));
  const left = groupBy(claims, ({ metadata: { namespace = '' } }) => (existing.has(namespace) ? [] : [namespace]));
  return [...left].map(([name, { length }]) => {
    const problem = `does not exist, but has ${count(length, 'IPAMClaim')}: the API server changes nothing there, so their addresses stay allocated`;
    const remedy = `kubectl create namespace ${name}; the controller then releases claims without a VM, and the namespace can be deleted again`;
    return errorOf('claims', `Namespace ${name}`, problem, remedy);
  });
}

/** A claim whose VM is not told about, such as that of a VMI without VM. */
function findingsOf(claim: IPAMClaim, parts: VmParts): Finding[] {
  const { namespace = '', name } = claim.metadata;
  const owner = claimOwnerOf(claim);
  const observed = parts.ofClaim(claim, owner?.name ?? name);
  const node = traceClaim(observed, claim, readNad(observed, claimNadOf(claim) ?? '').isHoldfast);
  const kind = controllerOf(claim)?.kind ?? VIRTUAL_MACHINE_KIND;
  const object = owner === undefined ? `${node.kind} ${node.name}` : `${kind} ${joinKey(namespace, owner.name)}`;
  return findingsIn(node, object);
}

const VM_PARTS = [VIRTUAL_MACHINE_KIND, 'Network'];

function isOfClaim({ check }: Finding): boolean {
  return check === 'claims';
}

/** Returns what is wrong in a part of a story. Pools have a check of their own. @param object of which the story is */
function findingsIn(node: TraceNode | undefined, object: string, network = ''): Finding[] {
  if (node === undefined || node.kind === 'AddressPool') return [];
  const place = node.kind === 'Network' ? `network "${node.name}": ` : network;
  const check = VM_PARTS.includes(node.kind) ? 'vms' : 'claims';
  const own = node.findings.flatMap((finding) => findingFor(finding, { check, object, place }));
  return [...own, ...node.children.flatMap((child) => findingsIn(child, object, place))];
}

function findingFor(
  { health, reason, message, remedy }: TraceFinding,
  { check, object, place }: { check: string; object: string; place: string },
): Finding[] {
  if (health !== 'wrong' && health !== 'warning') return [];
  const [, kind = '', namespace = '', name = ''] = /^(\S+) (.*)\/(.*)$/.exec(object) ?? [];
  const problem = `${place}${reason === undefined ? '' : `${reason}: `}${message}`;
  const command = kind === IPAM_CLAIM_KIND ? 'kubectl describe ipamclaim' : 'kubectl holdfast trace vm';
  const what = remedy ?? `${command} ${name} -n ${namespace}`;
  const found = (health === 'wrong' ? errorOf : warningOf)(check, object, problem, what);
  return [reason === undefined ? found : { ...found, reason }];
}

/** Whether the controller creates claims, as far as the user may know; the gate is open by default. */
type GateState =
  | { readonly state: 'open' | 'unknown' }
  | { readonly state: 'closed'; readonly controller: ComponentState };

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
