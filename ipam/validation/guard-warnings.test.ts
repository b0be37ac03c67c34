import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { POOL_NAD_NAMESPACE } from '../../api/names.js';
import type { NetworkAttachmentDefinition } from '../../api/networks/network-attachment.js';
import { transformNad } from '../../cluster/transforms.js';
import { adminPool } from '../../test/objects/pool-objects.js';
import { guardModeOf, warnOfGuard } from './guard-warnings.js';
import { runAtOnce } from '../../kube/run-in-slices.js';
import { reviewPool } from './pool-review.js';
import { validationViewOf } from './testing/validation-view.js';

const CHAINED = { type: 'holdfast' };
const IPAM = { type: 'holdfast', subnets: [{ cidr: '10.1.0.0/24' }] };

function network(config: object): NetworkAttachmentDefinition {
  return {
    metadata: { name: 'n', namespace: 'vms' },
    spec: { config: JSON.stringify({ cniVersion: '1.0.0', name: 'blue', ...config }) },
  };
}

function list(...plugins: object[]): NetworkAttachmentDefinition {
  return network({ plugins });
}

describe('a warning about the guard of a NAD', () => {
  it('names plugins whose interfaces have no port on their node', () => {
    for (const type of ['ipvlan', 'sriov', 'macvtap', 'host-device']) {
      const expected = [
        `spec.config.type: interfaces of the plugin "${type}" cannot have a guard. Their pods do not start with guard.mode Enforce: use bridge, or set guard.mode to "Off"`,
      ];
      expect(warnOfGuard(network({ type, ipam: IPAM }), 'Enforce')).to.deep.equal(expected);
      expect(warnOfGuard(network({ type, ipam: IPAM }), 'Off')).to.deep.equal([]);
    }
    const [warning] = warnOfGuard(list({ type: 'sriov', ipam: IPAM }, { type: 'tuning' }), 'Observe');
    expect(warning).to.match(/^spec\.config\.plugins\[0\]\.type: interfaces of the plugin "sriov"/);
  });

  it('says what the guard of macvlan interfaces needs', () => {
    const [warning] = warnOfGuard(network({ type: 'macvlan', ipam: IPAM }), 'Enforce');
    expect(warning).to.include('needs Linux 5.16 and a virtual machine, and nobody sees what it drops');
  });

  it('is not given for bridges, nor for configs that cannot be read', () => {
    expect(warnOfGuard(network({ type: 'bridge', ipam: IPAM }), 'Enforce')).to.deep.equal([]);
    const chained = list({ type: 'bridge', disableContainerInterface: true }, CHAINED);
    expect(warnOfGuard(chained, 'Off')).to.deep.equal([]);
    expect(warnOfGuard({ ...network({}), spec: { config: '{' } }, 'Enforce')).to.deep.equal([]);
    expect(warnOfGuard({ ...network({}), spec: {} }, 'Enforce')).to.deep.equal([]);
  });

  it('says that the guard of a chained plugin comes late without disableContainerInterface', () => {
    expect(warnOfGuard(list({ type: 'bridge' }, CHAINED), 'Off')).to.deep.equal([
      'spec.config.plugins[0]: the interface is up before its guard is applied: write "disableContainerInterface": true',
    ]);
  });

  it('says that a chained plugin fails if no plugin creates the interface before it', () => {
    const text = 'fails: the plugin "holdfast" follows the one that creates the interface, in a list of plugins';
    expect(warnOfGuard(list(CHAINED, { type: 'bridge' }), 'Off')).to.deep.equal([`spec.config.plugins[0] ${text}`]);
    expect(warnOfGuard(network(CHAINED), 'Off')).to.deep.equal([`spec.config ${text}`]);
  });

  it('says that a chained plugin fails in a version of CNI that it does not speak', () => {
    const plugins = [{ type: 'bridge', disableContainerInterface: true }, CHAINED];
    for (const cniVersion of [undefined, '0.2.0'])
      expect(warnOfGuard(network({ cniVersion, plugins }), 'Off').join()).to.match(
        /^spec\.config\.cniVersion is .*1\.1\.0 in the network's config\. Until then, no pod on this network starts$/,
      );
  });

  it('says that a chained plugin has no guard of its own', () => {
    const bridge = { type: 'bridge', disableContainerInterface: true };
    const [warning, ...more] = warnOfGuard(list(bridge, { ...CHAINED, guard: { mode: 'Enforce' } }), 'Off');
    expect(warning).to.match(/^spec\.config\.plugins\[1\]\.guard has no effect: the guard is that of the AddressPool/);
    expect(more).to.deep.equal([]);
  });

  it('says that a chained plugin fails beside an IPAM, and after a plugin without ports', () => {
    expect(warnOfGuard(list({ type: 'bridge', ipam: IPAM }, CHAINED), 'Off').join()).to.match(
      /^spec\.config\.plugins\[1\] fails, because a plugin delegates IPAM: remove it/,
    );
    expect(warnOfGuard(list({ type: 'sriov' }, CHAINED), 'Off').join()).to.include('"sriov" cannot have a guard');
  });
});

describe('the mode of the guard of a NAD', () => {
  const ours = (guard?: object) => transformNad(network({ type: 'bridge', ipam: { ...IPAM, guard } }));
  const pool = (mode?: 'Enforce', namespaces?: string[]): AddressPool => {
    const { metadata, spec } = adminPool('blue');
    return { metadata, spec: { ...spec, ...(mode && { guard: { mode } }), ...(namespaces && { namespaces }) } };
  };

  it("is its own, or Off, without an administrator's pool of its network", () => {
    expect(guardModeOf(ours({ mode: 'Observe' }), [])).to.equal('Observe');
    expect(guardModeOf(ours(), [])).to.equal('Off');
    expect(guardModeOf(ours({ mode: 'Observe' }), [pool('Enforce', ['other'])])).to.equal('Observe');
    const derived = pool('Enforce');
    const annotations = { [POOL_NAD_NAMESPACE]: 'vms' };
    expect(guardModeOf(ours(), [{ ...derived, metadata: { ...derived.metadata, annotations } }])).to.equal('Off');
  });

  it("is that of an administrator's pool, also if that has none", () => {
    expect(guardModeOf(ours(), [pool('Enforce')])).to.equal('Enforce');
    expect(guardModeOf(ours({ mode: 'Observe' }), [pool()])).to.equal('Off');
  });
});

describe('a warning about the guard of a pool', () => {
  const warningsOf = (guard: AddressPool['spec']['guard'], more: object = {}) => {
    const pool = adminPool('blue', { ...more, ...(guard && { guard }) });
    return runAtOnce(reviewPool({ operation: 'CREATE', pool }, validationViewOf({}))).warnings;
  };
  const shared = (): AddressPool['spec']['guard'] => ({
    mode: 'Enforce',
    allow: [{ addresses: ['10.0.0.100-10.0.0.110', 'fd00::5'] }],
  });

  it('says that a guard without a mode is off', () => {
    const warning = 'spec.guard: mode is absent, which means "Off": set it to Enforce or Observe, or remove guard';
    for (const guard of [{}, { migrationHold: false }]) expect(warningsOf(guard)).to.deep.equal([warning]);
    expect(warningsOf({ mode: 'Off' })).to.deep.equal([]);
  });

  it('names an allowed address that the pool allocates to others', () => {
    const warning =
      'spec.guard.allow: the pool may allocate 10.0.0.100 to others: add what is allowed to exclude or reserved';
    expect(warningsOf(shared())).to.deep.equal([warning]);
    for (const key of ['exclude', 'reserved']) {
      const subnets = [{ cidr: '10.0.0.0/24', [key]: ['10.0.0.100-10.0.0.110'] }];
      expect(warningsOf(shared(), { subnets })).to.deep.equal([]);
    }
  });
});
