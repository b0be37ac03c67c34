import { expect } from 'chai';
import fc from 'fast-check';
import { Switches, type VmSwitches } from '../../switches.js';
import type { KubeletPod } from '../pod.js';
import type { MigrationState, Vmi, VmiStatus } from './virtual-machine-instance.js';
import { stepVmi } from './vmi-machine.js';
import type { VmiView } from './vmi-view.js';

const NOW = Date.parse('2026-01-01T00:10:00Z');
const LONG_AGO = '2026-01-01T00:00:00Z';
const MACS = ['02:00:00:00:00:01', '02:00:00:00:00:02'] as const;
const DEFAULTS = new Switches().of('vms', 'vm1');

interface Given {
  status?: VmiStatus;
  deleted?: boolean;
  launchers?: KubeletPod[];
  switches?: Partial<VmSwitches>;
  lost?: string;
  copyingSince?: number;
}

interface Case {
  name: string;
  given: Given;
  expect: string;
  then?: (next: Vmi) => void;
}

function vmi({ status = {}, deleted }: Given): Vmi {
  return {
    metadata: { namespace: 'vms', name: 'vm1', uid: 'vmi-uid', ...(deleted ? { deletionTimestamp: LONG_AGO } : {}) },
    spec: {
      networks: [
        { name: 'default', pod: {} },
        { name: 'data', multus: { networkName: 'blue' } },
      ],
      domain: {
        devices: {
          interfaces: [
            { name: 'default', macAddress: MACS[0] },
            { name: 'data', macAddress: MACS[1] },
          ],
        },
      },
    },
    status: { phase: 'Running', nodeName: 'node-1', ...transitions(LONG_AGO), ...plugged(), ...status },
  };
}

function transitions(time: string): VmiStatus {
  return { phaseTransitionTimestamps: [{ phase: 'Running', phaseTransitionTimestamp: time }] };
}

/** What the machine itself makes of the spec's interfaces. */
function plugged(): VmiStatus {
  const common = { queueCount: 1, linkState: 'up' };
  return {
    interfaces: [
      { name: 'default', mac: MACS[0], infoSource: 'domain', ...common },
      { name: 'data', mac: MACS[1], infoSource: 'domain, multus-status', ...common },
    ],
  };
}

function launcher(name: string, node: string, more: { phase?: string; deleted?: boolean } = {}): KubeletPod {
  return {
    metadata: { namespace: 'vms', name, uid: name, ...(more.deleted ? { deletionTimestamp: LONG_AGO } : {}) },
    spec: { nodeName: node },
    status: { phase: more.phase ?? 'Running' },
  };
}

function view({ launchers = [launcher('source', 'node-1')], switches, lost, copyingSince }: Given): VmiView {
  return {
    launchers,
    switches: { ...DEFAULTS, ...switches },
    isNodeUp: (node) => node !== lost,
    now: NOW,
    copyingSince,
  };
}

function outcome(given: Given): { said: string; next: Vmi | undefined } {
  const step = stepVmi(vmi(given), view(given));
  return 'next' in step
    ? { said: step.reason, next: step.next }
    : { said: `wait for ${step.waitFor}`, next: undefined };
}

const HANDED_OVER: MigrationState = {
  migrationUid: 'migration',
  sourceNode: 'node-1',
  sourcePod: 'source',
  targetNode: 'node-2',
  targetPod: 'target',
};
const PREPARED = { ...HANDED_OVER, targetNodeAddress: '192.0.2.2' };
const COPYING = { ...PREPARED, startTimestamp: LONG_AGO };
const ARRIVED = { ...COPYING, targetNodeDomainDetected: true };
const BOTH = [launcher('source', 'node-1'), launcher('target', 'node-2')];

function migrating(migrationState: MigrationState, more: Given = {}): Given {
  return { launchers: BOTH, ...more, status: { migrationState, ...more.status } };
}

describe('The state machine of a VMI', () => {
  const cases: Case[] = [
    {
      name: 'leaves a VMI to virt-controller until it is scheduled',
      given: { status: { phase: 'Scheduling' } },
      expect: 'wait for virt-controller',
    },
    {
      name: 'starts the guest of a scheduled VMI, which can then migrate',
      given: { status: { phase: 'Scheduled', interfaces: [] } },
      expect: 'the guest runs',
      then: (next) => {
        expect(next.status).to.include({ phase: 'Running', selinuxContext: 'none' });
        expect(next.status?.conditions?.map(({ type, status }) => [type, status])).to.deep.equal([
          ['LiveMigratable', 'True'],
          ['StorageLiveMigratable', 'True'],
        ]);
        expect(next.status?.phaseTransitionTimestamps?.at(-1)?.phase).to.equal('Running');
        expect(next.status?.interfaces?.map(({ name }) => name)).to.deep.equal(['default']);
      },
    },
    { name: 'changes nothing of a running guest', given: {}, expect: 'wait for something to do' },
    {
      name: 'does nothing while its node is lost',
      given: { deleted: true, lost: 'node-1' },
      expect: 'wait for node node-1 to come back',
    },
    {
      name: 'shuts the guest down when the VMI is deleted',
      given: { deleted: true },
      expect: 'the guest shut down',
      then: (next) => expect(next.status?.phase).to.equal('Succeeded'),
    },
    {
      name: 'shuts down a guest that was only scheduled',
      given: { deleted: true, status: { phase: 'Scheduled' } },
      expect: 'the guest shut down',
    },
    {
      name: 'keeps a guest running while its termination is held',
      given: { deleted: true, switches: { holdTermination: true } },
      expect: 'wait for the guest to shut down, which is held',
    },
    {
      name: 'ends the guest with its killed launcher',
      given: { launchers: [launcher('source', 'node-1', { deleted: true })] },
      expect: 'the launcher was killed',
      then: (next) => expect(next.status?.phase).to.equal('Succeeded'),
    },
    {
      name: 'keeps the guest of a killed launcher while its termination is held',
      given: { launchers: [launcher('source', 'node-1', { deleted: true })], switches: { holdTermination: true } },
      expect: 'wait for the guest to shut down, which is held',
    },
    {
      name: 'ends a guest whose launcher is gone, although one of an earlier migration exists',
      given: { launchers: [launcher('earlier', 'node-1', { phase: 'Succeeded' })] },
      expect: 'the launcher is gone',
    },
    {
      name: 'plugs an interface into the guest when Multus reports it',
      given: { status: { interfaces: [plugged().interfaces![0]!, { name: 'data', infoSource: 'multus-status' }] } },
      expect: 'interfaces: default (domain), data (domain, multus-status)',
    },
    {
      name: 'prepares the target of a migration',
      given: migrating(HANDED_OVER),
      expect: 'migration target prepared',
      then: (next) => expect(next.status?.migrationState?.targetNodeAddress).to.match(/^192\.0\.2\./),
    },
    { name: 'copies the guest to a prepared target', given: migrating(PREPARED), expect: 'migration copies' },
    {
      name: 'keeps the condition MigrationRequired when the domain is on the target, but the guest does not run there',
      given: migrating(COPYING, { status: { conditions: [condition('MigrationRequired'), condition('Ready')] } }),
      expect: 'domain on target',
      then: (next) => expect(next.status?.conditions).to.have.length(2),
    },
    {
      name: 'removes the condition MigrationRequired when the guest runs on the target',
      given: migrating(ARRIVED, { status: { conditions: [condition('MigrationRequired'), condition('Ready')] } }),
      expect: 'migration completed, now on node-2',
      then: (next) => expect(next.status?.conditions?.map(({ type }) => type)).to.deep.equal(['Ready']),
    },
    {
      name: 'plugs no interface into a guest that is copied',
      given: migrating(ARRIVED, {
        status: { interfaces: [plugged().interfaces![0]!, { name: 'data', infoSource: 'multus-status' }] },
        switches: { migration: 'hold' },
      }),
      expect: 'wait for the copy, which is held',
    },
    {
      name: 'waits until the copy has ended',
      given: migrating(ARRIVED, { copyingSince: NOW - 100 }),
      expect: 'wait for the copy',
    },
    {
      name: 'runs the guest on the target after the copy',
      given: migrating(ARRIVED, { copyingSince: NOW - 500 }),
      expect: 'migration completed, now on node-2',
      then: (next) => {
        expect(next.status?.nodeName).to.equal('node-2');
        expect(next.metadata.labels).to.include({ 'kubevirt.io/nodeName': 'node-2' });
        expect(next.status?.migrationState).to.include({ completed: true });
        expect(next.status?.migrationState).not.to.have.property('failed');
      },
    },
    {
      name: 'removes the evacuation mark of the source after the guest has left it',
      given: migrating(ARRIVED, { status: { evacuationNodeName: 'node-1' } }),
      expect: 'migration completed, now on node-2',
      then: (next) => expect(next.status).not.to.have.property('evacuationNodeName'),
    },
    {
      name: 'never ends the copy while the migration is held',
      given: migrating(ARRIVED, { switches: { migration: 'hold' } }),
      expect: 'wait for the copy, which is held',
    },
    {
      name: 'stays on the source when the migration fails',
      given: migrating(COPYING, { switches: { migration: 'fail' } }),
      expect: 'migration failed',
      then: (next) => {
        expect(next.status?.nodeName).to.equal('node-1');
        expect(next.status?.migrationState).to.include({ failed: true, completed: true });
      },
    },
    {
      name: 'gives up a migration that is aborted, even one that is held',
      given: migrating({ ...ARRIVED, abortRequested: true }, { switches: { migration: 'hold' } }),
      expect: 'migration aborted',
      then: (next) => expect(next.status?.migrationState).to.include({ abortStatus: 'Succeeded', failed: true }),
    },
    {
      name: 'fails a migration whose target launcher is killed',
      given: migrating(ARRIVED, {
        launchers: [launcher('source', 'node-1'), launcher('target', 'node-2', { deleted: true })],
      }),
      expect: 'migration failed: its target is gone',
    },
    {
      name: 'waits for a lost target node',
      given: migrating(HANDED_OVER, { lost: 'node-2' }),
      expect: "wait for node node-2, the migration's target, to come back",
    },
    {
      name: 'ignores a migration that is over',
      given: migrating({ ...ARRIVED, completed: true, failed: true }),
      expect: 'wait for something to do',
    },
  ];

  for (const { name, given, expect: said, then } of cases) {
    it(name, () => {
      const { said: actual, next } = outcome(given);
      expect(actual).to.equal(said);
      if (then) then(next!);
    });
  }

  it('never changes its argument, and ends without further steps', () => {
    const phase = fc.constantFrom('Scheduled' as const, 'Running' as const, 'Succeeded' as const);
    const migrationState = fc.constantFrom(undefined, HANDED_OVER, PREPARED, COPYING, ARRIVED);
    const switches = fc.record({
      migration: fc.constantFrom('succeed' as const, 'fail' as const, 'hold' as const),
      holdTermination: fc.boolean(),
    });
    fc.assert(
      fc.property(phase, migrationState, switches, fc.boolean(), (phase, migration, switches, deleted) => {
        const given: Given = { deleted, switches, launchers: BOTH };
        let current = vmi({ ...given, status: { phase, ...(migration && { migrationState: migration }) } });
        for (let steps = 0; steps < 12; steps++) {
          const before = JSON.stringify(current);
          const step = stepVmi(current, { ...view(given), now: NOW + steps * 1_000, copyingSince: NOW });
          expect(JSON.stringify(current)).to.equal(before);
          if ('next' in step) current = step.next;
          else if (step.recheckAfterMs === undefined) return;
        }
        expect.fail('it did not come to rest');
      }),
    );
  });
});

function condition(type: string) {
  return { type, status: 'True', lastProbeTime: null, lastTransitionTime: LONG_AGO };
}
