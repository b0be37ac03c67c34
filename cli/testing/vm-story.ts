import type { VirtualMachine, VirtualMachineInstance } from '../../api/kubevirt.js';
import { expect } from 'chai';
import type { AddressLease } from '../../api/address-lease.js';
import type { AddressPool } from '../../api/address-pool.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import type { Pod } from '../../api/pod.js';
import type { Event } from '../../kube/events.js';
import { apiError } from '../../test/api-errors.js';
import { leaseOf } from '../../test/objects/lease-objects.js';
import { adminPool, holdfastConfig } from '../../test/objects/pool-objects.js';
import { NAMESPACE, claim, launcher, nad, vm, vmi } from '../../test/objects/workload-objects.js';
import { type Read, isUnread } from '../reader.js';
import type { ObservedVmTrace } from '../trace/observed.js';
import { actionableFindings, toldByTools } from './story-cluster.js';
import { type Health, type TraceNode, healthOfTree } from '../trace/tree.js';
import { traceVm } from '../trace/trace.js';

/** The VM `vm1` with the network `data` on NAD `blue`, which runs on node n1 and is as it should be. Each field replaces a part. */
export interface GivenVm {
  vm?: VirtualMachine | null | string;
  vmi?: VirtualMachineInstance | null | string;
  namespaceLabels?: Record<string, string>;
  pods?: Pod[] | string;
  claims?: IPAMClaim[] | string;
  events?: Event[] | string;
  /** By name in the namespace. */
  nads?: Record<string, NetworkAttachmentDefinition | null | string>;
  pools?: AddressPool[] | string;
  leases?: AddressLease[] | string;
  agents?: Record<string, Pod[] | string>;
}

const LONG_AGO = '2026-01-01T00:00:00Z';
const ADDRESS = '10.0.0.5';
/** A VM that is stopped. */
export const STOPPED: GivenVm = {
  vm: tracedVm(undefined, 'Stopped'),
  vmi: null,
  pods: [],
  leases: [claimLease({ node: '' })],
};
/** A VM that starts. */
export const STARTING: GivenVm = {
  vmi: tracedVmi({ phase: 'Scheduling' }),
  pods: [runningLauncher({ phase: 'Pending' })],
};
const NOW = Date.parse('2026-01-02T00:00:00Z');

/** Null: it does not exist; text: why it was not read. */
function readOf<T>(given: T | null | string): Read<T> {
  if (given === null) return { kind: 'absent', why: '', error: apiError(404, 'NotFound', '', '') };
  if (typeof given === 'string') return { kind: 'forbidden', why: given, error: apiError(403, 'Forbidden', given, '') };
  return { kind: 'found', value: given };
}

export function observedVm(given: GivenVm = {}): ObservedVmTrace {
  const { nads = { blue: blueNad() }, agents = { n1: [agentPod()] } } = given;
  return {
    namespace: NAMESPACE,
    name: 'vm1',
    vm: readOf(given.vm === undefined ? tracedVm() : given.vm),
    vmi: readOf(given.vmi === undefined ? tracedVmi() : given.vmi),
    namespaceObject: readOf({ metadata: { name: NAMESPACE, labels: given.namespaceLabels ?? {} } }),
    pods: readOf(given.pods ?? [runningLauncher()]),
    claims: readOf(given.claims ?? [allocatedClaim()]),
    events: readOf(given.events ?? []),
    nads: new Map(Object.entries(nads).map(([name, each]) => [`${NAMESPACE}/${name}`, readOf(each)])),
    pools: readOf(given.pools ?? [bluePool()]),
    leases: readOf(given.leases ?? [claimLease()]),
    agents: new Map(Object.entries(agents).map(([node, pods]) => [node, readOf(pods)])),
    now: NOW,
  };
}

export function tracedVm(networks: Record<string, string> = { data: 'blue' }, status = 'Running'): VirtualMachine {
  const made = vm(networks);
  return { ...made, metadata: { ...made.metadata, creationTimestamp: LONG_AGO }, status: { printableStatus: status } };
}

export function tracedVmi(status: VirtualMachineInstance['status'] = {}): VirtualMachineInstance {
  return { ...vmi({ data: 'blue' }), status: { phase: 'Running', nodeName: 'n1', ...status } };
}

export function blueNad(config: object = {}): NetworkAttachmentDefinition {
  return nad('blue', { ...holdfastConfig({}, 'blue-net'), allowPersistentIPs: true, ...config });
}

export function runningLauncher(given: { name?: string; node?: string; phase?: string; target?: boolean } = {}): Pod {
  const { name = 'virt-launcher-vm1-abcde', node = 'n1', phase = 'Running', target } = given;
  const pod = launcher([{ nad: 'blue', network: 'data', claim: 'vm1.data' }], { name, phase, created: LONG_AGO });
  const labels = { ...pod.metadata.labels, ...(target && { 'kubevirt.io/migrationJobUID': 'm1' }) };
  return { ...pod, metadata: { ...pod.metadata, labels }, spec: { nodeName: node } };
}

export function allocatedClaim(given: Parameters<typeof claim>[0] = {}): IPAMClaim {
  return claim({ ips: [`${ADDRESS}/24`], created: LONG_AGO, ...given });
}

/** A claim with a condition. @param type `IPsAllocated`, or another one beside its addresses */
export function claimWithCondition(
  [type, status, reason, message]: [string, 'True' | 'False', string, string],
  ips: string[] = [],
): IPAMClaim {
  const condition = { type, status, reason, message, lastTransitionTime: LONG_AGO };
  return { ...allocatedClaim(), status: { ips, conditions: [condition] } };
}

export function claimLease(spec: Partial<AddressLease['spec']> = {}): AddressLease {
  const lease = leaseOf(ADDRESS, 1);
  const owner = { kind: 'IPAMClaim' as const, namespace: NAMESPACE, name: 'vm1.data', uid: 'vm1.data-uid' };
  return { ...lease, spec: { ...lease.spec, owner, node: 'n1', ...spec } };
}

export function bluePool(
  ready: { status: 'True' | 'False'; message: string } = { status: 'True', message: '' },
): AddressPool {
  const condition = { type: 'Ready', reason: 'Serving', lastTransitionTime: '', ...ready };
  const counts = { capacity: 254, leased: 1, heldByStopped: 0, cooling: 0, free: 253, reserved: 0 };
  return { ...adminPool('blue', { network: 'blue-net' }), status: { ...counts, conditions: [condition] } };
}

export function agentPod(ready: 'True' | 'False' = 'True', waiting?: object): Pod {
  const conditions = [{ type: 'Ready', status: ready }];
  const status = { phase: 'Running', conditions, containerStatuses: [{ state: { ...(waiting && { waiting }) } }] };
  return { metadata: { name: 'holdfast-agent-x', namespace: 'holdfast-agents' }, spec: { nodeName: 'n1' }, status };
}

export function eventOn(name: string, reason: string, message: string, lastTimestamp = LONG_AGO): Event {
  const kind = name.startsWith('virt-launcher') ? 'Pod' : 'VirtualMachine';
  const involvedObject = { apiVersion: 'v1', kind, name, namespace: NAMESPACE };
  return {
    metadata: { name: `${name}.${reason}`, namespace: NAMESPACE },
    ...{ involvedObject, type: 'Warning', reason, message, count: 1, firstTimestamp: LONG_AGO, lastTimestamp },
    ...{ source: { component: 'test' }, reportingComponent: 'test', reportingInstance: 'test' },
  };
}

/** A story, and what its text must contain. The title completes "is wrong for …". */
export interface StoryCase {
  readonly title: string;
  readonly given: GivenVm;
  readonly health: Health;
  readonly includes: readonly string[];
  readonly excludes?: readonly string[];
}

/** Tells the story of a VM as lines: `kind name: state` for each object, and `health reason: message → remedy` for each finding. */
export function storyOf(given: GivenVm): { lines: string; health: Health } {
  const tree = traceVm(observedVm(given));
  if (tree === undefined) throw new TypeError('there is no VM');
  return { lines: linesOf(tree).join('\n'), health: healthOfTree(tree) };
}

/** Declares tests for each story: what `trace` says, and that the doctor, `status` and the web page name the same cause and a remedy. */
export function describeStories(title: string, cases: readonly StoryCase[]): void {
  describe(title, () => {
    for (const { title: subject, given, health, includes, excludes = [] } of cases) {
      it(`say ${health} for ${subject}`, () => {
        const story = storyOf(given);
        for (const text of includes) expect(story.lines).to.include(text);
        for (const text of excludes) expect(story.lines).not.to.include(text);
        expect(story.health, story.lines).to.equal(health);
      });
    }

    // a namespace without persistent addresses is deliberate: only `trace` mentions it
    for (const { title: subject, given } of cases.filter(({ given: { namespaceLabels } }) => !namespaceLabels)) {
      const observed = observedVm(given);
      const told = actionableFindings(traceVm(observed)!);
      if (told.length === 0 || [observed.vm, observed.claims, observed.events].some(isUnread)) continue;
      it(`are told by the doctor, status and the web page too for ${subject}`, () => {
        for (const [tool, text] of Object.entries(toldByTools(observed))) {
          expect(text, tool).to.include(`VirtualMachine ${NAMESPACE}/vm1`);
          for (const { message, remedy = 'kubectl holdfast trace vm vm1' } of told)
            expect(text, tool).to.include(message).and.to.include(remedy);
        }
      });
    }
  });
}

function linesOf(node: TraceNode, indent = ''): string[] {
  const { kind, name, state, findings, children } = node;
  const texts = findings.map(
    ({ health, reason, message, remedy }) =>
      `${indent}  ${health} ${reason ? `${reason}: ` : ''}${message}${remedy ? ` → ${remedy}` : ''}`,
  );
  return [
    `${indent}${kind}${name && ` ${name}`}: ${state}`,
    ...texts,
    ...children.flatMap((child) => linesOf(child, `${indent}  `)),
  ];
}
