import { expect } from 'chai';
import type { VirtualMachineInstance, VmInterface } from '../../api/kubevirt.js';
import { transformKubeVirt } from '../../cluster/transforms.js';
import { claim, nad, vm, vmi } from '../../test/objects/workload-objects.js';
import { DHCPAfterMigration } from './dhcp-after-migration.js';
import { type WorkloadScenario, observationOf } from './testing/workload-observation.js';

const MIGRATED = { completed: true };
const CNI = nad('blue', { name: 'blue-net', allowPersistentIPs: true, type: 'bridge', ipam: { type: 'holdfast' } });
const LAYER2 = nad('blue', { name: 'blue-net', allowPersistentIPs: true, type: 'bridge' });
const DHCP_CLAIM = claim({ ips: ['10.0.0.5/24', 'fd00::5/64'] });

/** A VMI with one interface, by default with bridge binding. */
function running(
  changed: Omit<VmInterface, 'name'> = { bridge: {} },
  migrationState: object | null = MIGRATED,
  uid = 'vmi-uid',
): VirtualMachineInstance {
  const guest = vmi({ data: 'blue' }, { uid });
  const devices = { interfaces: [{ name: 'data', ...changed }] };
  return {
    ...guest,
    spec: { ...guest.spec, domain: { devices } },
    status: { phase: 'Running', interfaces: [], ...(migrationState && { migrationState }) },
  };
}

function scenario(guest: VirtualMachineInstance | undefined, more: Partial<WorkloadScenario> = {}): WorkloadScenario {
  return { vm: vm({ data: 'blue' }), ...(guest && { vmi: guest }), nads: [CNI], claims: [DHCP_CLAIM], ...more };
}

function installed(version: string | undefined): DHCPAfterMigration {
  const metadata = { name: 'kubevirt', namespace: 'kubevirt' };
  const status = version === undefined ? {} : { status: { observedKubeVirtVersion: version } };
  return new DHCPAfterMigration({ list: () => [transformKubeVirt({ metadata, ...status })] });
}

describe('the warning that a guest loses its address when it reboots after a migration', () => {
  it('names VM, interface, version and remedy', () => {
    expect(installed('v1.8.4').take(observationOf(scenario(running())))).to.deep.equal({
      reason: 'DHCPLostAfterMigration',
      regarding: 'vm',
      message:
        'The VM has migrated without a macAddress for "data": KubeVirt 1.8 no longer answers DHCP requests of the guest, which therefore has no IPv4 ' +
        'address after a reboot. Stop and start the VM instead of rebooting its guest. KubeVirt 1.9 answers',
    });
  });

  it('is given once for each VMI', () => {
    const warning = installed('v1.8.0');
    const reasons = [running(), running(), undefined, running(), running(undefined, MIGRATED, 'next-uid')].map(
      (guest) => warning.take(observationOf(scenario(guest)))?.reason,
    );
    const lost = 'DHCPLostAfterMigration';
    expect(reasons, 'again after the VMI was gone').to.deep.equal([lost, undefined, undefined, lost, lost]);
  });

  it('names at most four interfaces', () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    const guest = vmi(Object.fromEntries(names.map((name) => [name, 'blue'])));
    const devices = { interfaces: names.map((name) => ({ name, bridge: {} })) };
    const migrated = { ...guest, spec: { ...guest.spec, domain: { devices } }, status: { migrationState: MIGRATED } };
    const claims = names.map((name) => claim({ name: `vm1.${name}`, vmNetwork: name, ips: ['10.0.0.5/24'] }));
    const event = installed('v1.8.0').take(observationOf(scenario(migrated, { claims })));
    expect(event?.message).to.include('for "a", "b", "c", "d" and 2 more:');
  });

  const defective: { name: string; version: string }[] = [
    { name: 'a version without a leading v', version: '1.7.4' },
    { name: 'a build from source', version: 'v1.8.0-34-g1a2b3c-dirty' },
  ];
  for (const { name, version } of defective) {
    it(`is given with ${name}`, () => {
      expect(installed(version).take(observationOf(scenario(running())))).to.have.property('regarding', 'vm');
    });
  }

  for (const version of [
    'v1.9.0',
    'v1.9.0-alpha.0',
    'v1.10.1',
    'v2.1.0',
    'v4.18.3',
    'latest',
    `1.8.${'9'.repeat(70)}`,
    undefined,
  ]) {
    it(`is not given with version ${version?.slice(0, 16) ?? 'unknown'} of KubeVirt`, () => {
      expect(installed(version).take(observationOf(scenario(running())))).to.equal(undefined);
    });
  }

  const calm: { name: string; given: WorkloadScenario }[] = [
    { name: 'before a migration', given: scenario(running(undefined, null)) },
    { name: 'while the VM migrates', given: scenario(running(undefined, { completed: false })) },
    { name: 'after a migration that failed', given: scenario(running(undefined, { completed: true, failed: true })) },
    { name: 'with a macAddress', given: scenario(running({ bridge: {}, macAddress: '02:00:00:00:00:01' })) },
    { name: 'with a binding that has no DHCP server', given: scenario(running({ sriov: {} })) },
    { name: 'on a NAD without IPAM', given: scenario(running(), { nads: [LAYER2] }) },
    { name: 'with an IPv6 address alone', given: scenario(running(), { claims: [claim({ ips: ['fd00::5/64'] })] }) },
    { name: 'without addresses', given: scenario(running(), { claims: [claim()] }) },
    {
      name: 'after the guest has ended',
      given: scenario({ ...running(), status: { phase: 'Succeeded', migrationState: MIGRATED } }),
    },
  ];
  for (const { name, given } of calm) {
    it(`is not given ${name}`, () => {
      expect(installed('v1.8.0').take(observationOf(given))).to.equal(undefined);
    });
  }

  it('is on the VMI if there is no VM', () => {
    const guest = vmi({ data: 'blue' }, { vm: null });
    const standalone = { ...running(), metadata: guest.metadata };
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm1', uid: 'vmi-uid' };
    const given = { vmi: standalone, nads: [CNI], claims: [claim({ owner, ips: ['10.0.0.5/24'] })] };
    expect(installed('v1.8.0').take(observationOf(given))).to.have.property('regarding', 'vmi');
  });
});
