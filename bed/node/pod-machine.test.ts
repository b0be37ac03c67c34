import { expect } from 'chai';
import { Switches, type VmSwitches } from '../switches.js';
import { networkStatus } from './vmi/network-status.js';
import type { SandboxState } from './sandbox-networks.js';
import { stepPod, type PodChange } from './pod-machine.js';
import type { KubeletPod, PodStatus } from './pod.js';
import type { MigrationState, Vmi, VmiPhase } from './vmi/virtual-machine-instance.js';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const NETWORKS = '[{"name":"blue","namespace":"vms","interface":"pod3a6eb0790f3"}]';
const MORE_NETWORKS =
  '[{"name":"blue","namespace":"vms","interface":"pod3a6eb0790f3"},{"name":"green","interface":"podgreen"}]';
const IPS = ['10.244.1.7'];
const ENDED: SandboxState = { state: 'ended' };
const GATE = 'kubevirt.io/virtual-machine-unpaused';

interface Given {
  pod?: Partial<{ node: string; deleted: boolean; networks: string; attached: string; status: PodStatus }>;
  vmi?: Vmi;
  switches?: Partial<VmSwitches>;
  lost?: string;
  /** By default it is up where the pod has a network-status. */
  network?: SandboxState;
  attachAfter?: number;
}

interface Case {
  name: string;
  given: Given;
  expect: string;
  then?: (change: PodChange) => void;
}

function pod({ pod: { node = 'node-1', deleted, networks = NETWORKS, attached, status } = {} }: Given): KubeletPod {
  const annotations: Record<string, string> = { 'k8s.v1.cni.cncf.io/networks': networks };
  const made: KubeletPod = {
    metadata: { namespace: 'vms', name: 'source', uid: 'pod-uid', annotations },
    spec: {
      nodeName: node,
      containers: [{ name: 'compute', image: 'registry.test:5000/virt-launcher:v1' }],
      initContainers: [{ name: 'log', restartPolicy: 'Always' }, { name: 'copy' }],
      readinessGates: [{ conditionType: GATE }],
    },
    status: status ?? { phase: 'Pending' },
  };
  if (attached !== undefined) {
    annotations['k8s.v1.cni.cncf.io/network-status'] = networkStatus({
      metadata: { ...made.metadata, annotations: { 'k8s.v1.cni.cncf.io/networks': attached } },
    });
  }
  if (deleted) made.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  return made;
}

function running(gate: 'True' | 'False' = 'True', ready: 'True' | 'False' = gate): PodStatus {
  return {
    phase: 'Running',
    conditions: [
      { type: GATE, status: gate },
      { type: 'Ready', status: ready },
    ],
  };
}

function vmi(phase: VmiPhase, nodeName = 'node-1', migrationState?: MigrationState): Vmi {
  return {
    metadata: { namespace: 'vms', name: 'vm1', uid: 'vmi-uid' },
    status: { phase, nodeName, ...(migrationState && { migrationState }) },
  };
}

const MIGRATION = { migrationUid: 'migration', sourceNode: 'node-1', targetNode: 'node-2' };

function outcome(given: Given): { said: string; change: PodChange | undefined } {
  const step = stepPod(pod(given), {
    vmi: given.vmi,
    switches: { ...new Switches().of('vms', 'vm1'), ...given.switches },
    isNodeUp: (node) => node !== given.lost,
    now: NOW,
    network: given.network ?? { state: given.pod?.attached === undefined ? 'none' : 'up', ips: IPS },
    attachAfter: given.attachAfter,
  });
  return 'next' in step
    ? { said: step.reason, change: step.next }
    : { said: `wait for ${step.waitFor}`, change: undefined };
}

describe('The state machine of a pod', () => {
  const cases: Case[] = [
    { name: 'waits for a node', given: { pod: { node: '' } }, expect: 'wait for the scheduler' },
    { name: 'does nothing on a lost node', given: { lost: 'node-1' }, expect: 'wait for node node-1 to come back' },
    {
      name: 'attaches the networks before anything runs',
      given: {},
      expect: 'networks attached',
      then: (change) => expect(change.kind).to.equal('attach'),
    },
    {
      name: 'attaches no networks while they are held',
      given: { switches: { holdNetworks: true } },
      expect: 'wait for CNI ADD, which is held',
    },
    {
      name: 'waits before it creates another sandbox after a failure',
      given: { attachAfter: NOW + 1 },
      expect: 'wait for the next CNI ADD',
    },
    { name: 'creates another sandbox after the delay', given: { attachAfter: NOW }, expect: 'networks attached' },
    {
      name: 'starts the containers once the networks are attached',
      given: { pod: { attached: NETWORKS } },
      expect: 'started → Running',
      then: (change) => {
        const { phase, podIP, conditions } = statusOf(change);
        expect([phase, podIP]).to.deep.equal(['Running', IPS[0]]);
        expect(conditions?.find(({ type }) => type === 'Ready')?.status).to.equal('False');
      },
    },
    {
      name: 'makes the pod Ready when its gates are open',
      given: { pod: { attached: NETWORKS, status: running('True', 'False') } },
      expect: 'ready',
    },
    {
      name: 'makes the pod unready when a gate closes',
      given: { pod: { attached: NETWORKS, status: running('False', 'True') } },
      expect: 'not ready',
    },
    {
      name: 'changes nothing of a running pod',
      given: { pod: { attached: NETWORKS, status: running() } },
      expect: 'wait for something to do',
    },
    {
      name: 'creates another sandbox for a running pod that lost its own',
      given: { pod: { status: running() } },
      expect: 'networks attached',
    },
    {
      name: 'reports the address that came with another sandbox',
      given: { pod: { attached: NETWORKS, status: { ...running(), podIP: '10.244.1.3' } } },
      expect: 'the pod has another address',
      then: (change) => expect(statusOf(change).podIP).to.equal(IPS[0]),
    },
    {
      name: 'creates no sandbox after it was stopped',
      given: { pod: { status: running() }, network: ENDED },
      expect: 'ended → Succeeded',
    },
    {
      name: 'attaches what is plugged into a running pod',
      given: { pod: { networks: MORE_NETWORKS, attached: NETWORKS, status: running() } },
      expect: 'networks changed',
    },
    {
      name: 'detaches what is unplugged from a running pod',
      given: { pod: { networks: NETWORKS, attached: MORE_NETWORKS, status: running() } },
      expect: 'networks changed',
    },
    {
      name: 'leaves the networks of a running pod without a dynamic networks controller',
      given: {
        pod: { networks: MORE_NETWORKS, attached: NETWORKS, status: running() },
        switches: { dynamicNetworks: false },
      },
      expect: 'wait for something to do',
    },
    {
      name: 'detaches the networks of a launcher whose guest has ended before it reports the end',
      given: { pod: { attached: NETWORKS, status: running() }, vmi: vmi('Succeeded') },
      expect: 'the guest ended: networks detached',
    },
    {
      name: 'reports no end while CNI DEL is delayed',
      given: {
        pod: { attached: NETWORKS, status: running() },
        vmi: vmi('Succeeded'),
        switches: { delayNetworkEnd: true },
      },
      expect: 'wait for CNI DEL, which is delayed',
    },
    {
      name: 'ends the launcher with its guest',
      given: { pod: { status: running() }, vmi: vmi('Succeeded'), network: ENDED },
      expect: 'the guest ended → Succeeded',
    },
    {
      name: 'ends the launcher that the guest has left',
      given: {
        pod: { status: running() },
        network: ENDED,
        vmi: vmi('Running', 'node-2', { ...MIGRATION, sourcePod: 'source', targetPod: 'target', completed: true }),
      },
      expect: 'the guest moved away → Succeeded',
    },
    {
      name: 'fails the target launcher of a failed migration',
      given: {
        pod: { status: running() },
        vmi: vmi('Running', 'node-2', { ...MIGRATION, targetPod: 'source', completed: true, failed: true }),
      },
      expect: 'migration failed → Failed',
      then: (change) => expect(statusOf(change).phase).to.equal('Failed'),
    },
    {
      name: 'keeps the source launcher of a failed migration',
      given: {
        pod: { attached: NETWORKS, status: running() },
        vmi: vmi('Running', 'node-1', { ...MIGRATION, sourcePod: 'source', completed: true, failed: true }),
      },
      expect: 'wait for something to do',
    },
    {
      name: 'detaches the networks of a deleted pod that never ran',
      given: { pod: { deleted: true, attached: NETWORKS } },
      expect: 'terminated: networks detached',
    },
    {
      name: 'detaches the networks of a deleted pod before it ends',
      given: { pod: { deleted: true, attached: NETWORKS, status: running() } },
      expect: 'terminated: networks detached',
    },
    {
      name: 'removes no deleted pod while CNI DEL is delayed',
      given: {
        pod: { deleted: true, attached: NETWORKS, status: { phase: 'Succeeded' } },
        switches: { delayNetworkEnd: true },
      },
      expect: 'wait for CNI DEL, which is delayed',
    },
    {
      name: 'detaches the networks of a pod whose status another client set to ended',
      given: { pod: { attached: NETWORKS, status: { phase: 'Failed' } } },
      expect: 'ended: networks detached',
    },
    { name: 'removes a deleted pod that never ran', given: { pod: { deleted: true } }, expect: 'terminated: removed' },
    {
      name: 'waits for virt-handler to report the end of the guest before it ends the launcher',
      given: { pod: { deleted: true, status: running() }, vmi: vmi('Running') },
      expect: 'wait for virt-handler to report the end of the guest',
    },
    {
      name: 'ends the deleted target of a migration at once',
      given: {
        pod: { deleted: true, status: running(), node: 'node-2' },
        vmi: vmi('Running', 'node-1', { ...MIGRATION, sourcePod: 'other', targetPod: 'source' }),
      },
      expect: 'terminated → Succeeded',
    },
    {
      name: 'ends a deleted pod whose guest has ended',
      given: { pod: { deleted: true, status: running() }, vmi: vmi('Succeeded') },
      expect: 'terminated → Succeeded',
    },
    {
      name: 'ends a deleted pod that has no guest',
      given: { pod: { deleted: true, status: running() } },
      expect: 'terminated → Succeeded',
    },
    {
      name: 'does not end a pod while its termination is held',
      given: { pod: { deleted: true, status: running() }, switches: { holdTermination: true } },
      expect: 'wait for termination, which is held',
    },
    {
      name: 'removes a deleted pod that has ended',
      given: { pod: { deleted: true, status: { phase: 'Succeeded' } }, switches: { holdTermination: true } },
      expect: 'terminated: removed',
    },
    { name: 'leaves an ended pod', given: { pod: { status: { phase: 'Failed' } } }, expect: 'wait for its removal' },
  ];

  for (const { name, given, expect: said, then } of cases) {
    it(name, () => {
      const { said: actual, change } = outcome(given);
      expect(actual).to.equal(said);
      if (then) then(change!);
    });
  }
});

function statusOf(change: PodChange): PodStatus {
  if (change.kind !== 'report') throw new Error(`the change is to ${change.kind}`);
  return change.status;
}
