import { expect } from 'chai';
import fc from 'fast-check';
import type { VmVolume, VmiSpec } from '../../api/kubevirt.js';
import { type NetworkDataRequest, networkDataRequest } from './request.js';
import type { Sync, SyncResult } from '../../kube/controller-loop.js';
import { ReconcilerWorld, UID_LABEL, runSync } from '../testing/reconciler-world.js';

function spec(...volumes: VmVolume[]): VmiSpec {
  return { volumes };
}

const NO_CLOUD = spec({ cloudInitNoCloud: { networkDataSecretRef: { name: 'net' } } });
const CONFIG_DRIVE = spec({ cloudInitConfigDrive: { networkDataSecretRef: { name: 'net' } } });

const optional = <T>(values: fc.Arbitrary<T>) => fc.option(values, { nil: undefined });

describe('the request of a VM for network data', () => {
  const cases: { name: string; given: Parameters<typeof networkDataRequest>; expect: NetworkDataRequest | string }[] = [
    { name: 'is none without annotation and default', given: [NO_CLOUD, undefined, false], expect: { kind: 'none' } },
    {
      name: 'names the Secret of a NoCloud volume',
      given: [NO_CLOUD, 'net', false],
      expect: { kind: 'secret', name: 'net', format: 'version-2' },
    },
    {
      name: 'names the Secret of a config drive',
      given: [CONFIG_DRIVE, 'net', false],
      expect: { kind: 'secret', name: 'net', format: 'openstack' },
    },
    {
      name: 'follows the default of a pool',
      given: [NO_CLOUD, undefined, true],
      expect: { kind: 'secret', name: 'net', format: 'version-2' },
    },
    {
      name: 'needs a Secret to follow the default of a pool',
      given: [spec({ cloudInitNoCloud: {} }), undefined, true],
      expect: { kind: 'none' },
    },
    {
      name: 'is undecided while nobody knows the default of its pool',
      given: [NO_CLOUD, undefined, undefined],
      expect: { kind: 'undecided', name: 'net' },
    },
    {
      name: 'is none without a Secret, whatever the default of its pool is',
      given: [spec({ cloudInitNoCloud: {} }), undefined, undefined],
      expect: { kind: 'none' },
    },
    {
      name: 'is none for a name that no Secret can have, while nobody knows the default of its pool',
      given: [spec({ cloudInitNoCloud: { networkDataSecretRef: { name: '../net' } } }), undefined, undefined],
      expect: { kind: 'none' },
    },
    { name: 'can opt out of an unknown default', given: [NO_CLOUD, '', undefined], expect: { kind: 'none' } },
    {
      name: 'is that of the annotation, whatever the default of its pool is',
      given: [NO_CLOUD, 'net', undefined],
      expect: { kind: 'secret', name: 'net', format: 'version-2' },
    },
    { name: 'can opt out of the default', given: [NO_CLOUD, '', true], expect: { kind: 'none' } },
    {
      name: 'concerns the first cloud-init volume only, as in KubeVirt',
      given: [spec({ name: 'disk' }, { cloudInitConfigDrive: {} }, ...(NO_CLOUD.volumes ?? [])), 'net', false],
      expect: "is not the Secret in networkDataSecretRef of the VM's first cloud-init volume, which is absent",
    },
    {
      name: 'is refused without a cloud-init volume',
      given: [spec(), 'net', false],
      expect: 'has no cloudInitNoCloud',
    },
    {
      name: 'is refused if the names differ',
      given: [NO_CLOUD, 'other', false],
      expect: 'write the same name in both',
    },
    {
      name: 'is refused for a name that no Secret can have',
      given: [spec({ cloudInitNoCloud: { networkDataSecretRef: { name: '../net' } } }), '../net', false],
      expect: '"../net" in annotation ipam.holdfast.dev/network-data is not a name of a Secret',
    },
  ];
  for (const { name, given, expect: wanted } of cases) {
    it(name, () => {
      const found = networkDataRequest(...given);
      if (typeof wanted !== 'string') expect(found).to.deep.equal(wanted);
      else expect(found.kind === 'refused' ? found.message : found.kind).to.include(wanted);
    });
  }

  it('is a valid name or a short, printable message for any text of a tenant', () => {
    const hostile = fc.oneof(
      fc.string({ unit: 'binary-ascii', maxLength: 400 }),
      fc.constantFrom('{}', '- a', '&a', '\n---\n'),
    );
    fc.assert(
      fc.property(hostile, optional(hostile), optional(fc.boolean()), (ref, annotation, isDefault) => {
        const found = networkDataRequest(
          spec({ cloudInitNoCloud: { networkDataSecretRef: { name: ref } } }),
          annotation,
          isDefault,
        );
        if (found.kind === 'secret' || found.kind === 'undecided') expect(found.name).to.match(/^[-a-z0-9.]{1,253}$/);
        if (found.kind === 'refused') expect(found.message.length).to.be.below(900);
      }),
    );
  });
});

const STALE = '10.1.0.99';

describe('the Secret of a VM that leaves it to its pool whether it has network data', () => {
  let world: ReconcilerWorld;
  let run: Sync;

  beforeEach(() => {
    world = new ReconcilerWorld();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24' }], { networkData: { default: true } });
    world.addVm('vm1', { annotation: null });
    run = world.reconciler().createSync();
  });

  const sync = (): Promise<SyncResult> => runSync(run);

  function ownerOfSecret(): string | undefined {
    return world.secret?.metadata.labels?.[UID_LABEL];
  }

  it('loses the data of a backup before the claim exists, and gets that of the claim', async () => {
    world.restoreSecret(STALE);
    await sync();
    expect(world.textOfSecret).to.equal('');
    world.addLease('10.1.0.5', world.addClaim('data', ['10.1.0.5/24']));
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
  });

  it('loses the data of a backup that is restored after the VM when the VM starts, although the claim does not exist', async () => {
    await sync();
    world.restoreSecret(STALE);
    world.addVmi('vmi-1', undefined);
    await sync();
    expect(world.textOfSecret).to.equal('');
  });

  it('loses its data if the claim is deleted while no leader runs', async () => {
    world.addLease('10.1.0.5', world.addClaim('data', ['10.1.0.5/24']));
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    world.claims.delete('vms/vm1.data');
    run = world.reconciler().createSync();
    await sync();
    expect(world.textOfSecret).to.equal('');
  });

  it('is not created while the claim does not exist, and is tried once', async () => {
    await sync();
    await sync();
    expect([...world.secrets]).to.deep.equal([]);
    expect(world.requests).to.deep.equal(['patch secrets net']);
  });

  it('is left alone if the VM opts out, or no claim is expected', async () => {
    world.restoreSecret(STALE);
    world.addVm('vm1', { annotation: '' });
    await sync();
    world.addVm('vm1', { annotation: null });
    world.addNad('data', { name: 'data', type: 'bridge' });
    await sync();
    expect(world.requests).to.deep.equal([]);
  });

  it('is not taken over before the claim exists if another VM requests it', async () => {
    world.restoreSecret(STALE);
    world.addVm('vm2', { uid: 'vm2-uid', created: '2026-02-01T00:00:00Z' });
    await sync();
    expect(ownerOfSecret()).to.equal('former');
    await runSync(run, 'vms/vm2');
    expect(ownerOfSecret()).to.equal('vm2-uid');
    expect(world.textOfSecret).to.equal('');
  });
});
