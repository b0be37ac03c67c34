import { type IPAMClaim, labelValue } from '../../api/ipam-claim.js';
import { secondaryNetworks } from '../../api/kubevirt.js';
import { joinKey, objectKey } from '../../api/meta.js';
import { CLAIM_VM_LABEL } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/network-attachment.js';
import { unnotedClaimNames } from '../../api/vm-claims.js';
import { StatusError } from '../../kube/errors.js';
import type { Read, Unread } from '../reader.js';
import type { TracedVm } from '../trace/observed.js';
import { traceVm } from '../trace/trace.js';
import { shorten } from './check-networks.js';
import { type Finding, errorOf, warningOf } from './finding.js';
import type { ObservedCluster } from './observe.js';

const refusal = new StatusError({ request: 'GET', status: 403, reason: 'Forbidden', message: '' });
/** A part of the story that the doctor does not read for each VM. */
const NOT_READ: Unread = { kind: 'forbidden', why: 'not read', error: refusal };
const ABSENT: Unread = { ...NOT_READ, kind: 'absent' };

/** VMs with an interface that gets no address, or none that persists: what `kubectl holdfast trace vm` says about their networks. */
export function checkVms(observed: ObservedCluster): Finding[] {
  const { vms = [], claims, nads, namespaces, events = [], now } = observed;
  if (claims === undefined || now === undefined) return [];
  const nadByKey = nads && new Map(nads.map((nad) => [objectKey(nad), nad]));
  const namespaceByName = new Map(namespaces?.map((each) => [each.metadata.name, each]));
  const claimsByVm = groupClaims(claims);
  const findings = vms.flatMap((vm) => {
    const { namespace = '', name } = vm.metadata;
    const object = namespaceByName.get(namespace);
    const tree = traceVm({
      ...{
        namespace,
        name,
        now,
        vm: found(vm),
        agents: new Map(),
        pods: found([]),
        events: found(events.filter(({ involvedObject }) => involvedObject.name === name)),
      },
      ...{ vmi: NOT_READ, pools: NOT_READ, leases: NOT_READ },
      namespaceObject: object === undefined ? NOT_READ : found(object),
      claims: found(claimsOf(vm, claimsByVm)),
      nads: readNads(vm, nadByKey, observed.onlyNamespace),
    });
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
  });
  return shorten('vms', 'VirtualMachines', findings);
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
