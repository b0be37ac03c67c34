import { expect } from 'chai';
import { Switches } from '../../switches.js';
import { cloudInitProblem } from './cloud-init.js';
import type { MountedSecrets } from '../pod-volumes.js';
import type { Vmi } from './virtual-machine-instance.js';
import { stepVmi } from './vmi-machine.js';

type Disk = NonNullable<NonNullable<NonNullable<Vmi['spec']>['volumes']>[number]['cloudInitNoCloud']>;

const NOW = Date.parse('2026-01-01T00:10:00Z');
const REF = { name: 'secret' };
const EMPTY = 'userDataBase64, userData, networkDataBase64 or networkData is required for a cloud-init data source';
const NOT_FOUND = 'no cloud-init data-source found at volume: cloudinit';

function vmiWith(disk: Disk, kind: 'cloudInitNoCloud' | 'cloudInitConfigDrive' = 'cloudInitNoCloud'): Vmi {
  return {
    metadata: { namespace: 'vms', name: 'vm1', uid: 'vmi-uid' },
    spec: { volumes: [{ name: 'root' }, { name: 'cloudinit', [kind]: disk }] },
    status: { phase: 'Scheduled', nodeName: 'node-1' },
  };
}

function mounted(userData: Record<string, string>, networkData: Record<string, string> = {}): MountedSecrets {
  return new Map(Object.entries({ 'cloudinit-udata': userData, 'cloudinit-ndata': networkData }));
}

describe('the cloud-init disk of a guest', () => {
  const cases: { name: string; disk: Disk; files?: MountedSecrets; problem?: string }[] = [
    {
      name: 'has the network data of a Secret',
      disk: { networkDataSecretRef: REF },
      files: mounted({}, { networkdata: 'eA==' }),
    },
    {
      name: 'has network data under the other key',
      disk: { networkDataSecretRef: REF },
      files: mounted({}, { networkData: 'eA==' }),
    },
    { name: 'lacks network data of a Secret without the key', disk: { networkDataSecretRef: REF }, problem: EMPTY },
    {
      name: 'lacks network data of a Secret with an empty key',
      disk: { networkDataSecretRef: REF },
      files: mounted({}, { networkdata: '' }),
      problem: EMPTY,
    },
    { name: 'is made of user data alone', disk: { userData: '#cloud-config', networkDataSecretRef: REF } },
    { name: 'is made of encoded user data alone', disk: { userDataBase64: 'eA==', networkDataSecretRef: REF } },
    {
      name: 'is made of user data of another Secret alone',
      disk: { userDataSecretRef: REF, networkDataSecretRef: REF },
      files: mounted({ userData: 'eA==' }),
    },
    {
      name: 'cannot be made if both Secrets lack their keys, although the spec has network data',
      disk: { userDataSecretRef: REF, networkDataSecretRef: REF, networkData: 'version: 2' },
      problem: NOT_FOUND,
    },
  ];
  for (const { name, disk, files = mounted({}), problem } of cases) {
    it(name, () => {
      for (const kind of ['cloudInitNoCloud', 'cloudInitConfigDrive'] as const)
        expect(cloudInitProblem(vmiWith(disk, kind), files)).to.equal(problem);
    });
  }

  it('is not needed by a VM without such a volume', () => {
    expect(
      cloudInitProblem({ metadata: { name: 'vm1' }, spec: { volumes: [{ name: 'root' }] } }, mounted({})),
    ).to.equal(undefined);
  });

  it('keeps a guest from starting until another launcher has its data, and the VMI says why', () => {
    const launchers = [{ metadata: { name: 'launcher' }, spec: { nodeName: 'node-1' }, status: { phase: 'Running' } }];
    const view = { launchers, switches: new Switches().of('vms', 'vm1'), isNodeUp: () => true, now: NOW };
    const failed = stepVmi(vmiWith({}), { ...view, startError: EMPTY });
    if (!('next' in failed)) return expect.fail('the error is not reported');
    expect(failed.next.status?.phase).to.equal('Scheduled');
    expect(failed.next.status?.conditions?.[0]).to.include({ type: 'Synchronized', status: 'False', message: EMPTY });
    expect(stepVmi(failed.next, { ...view, startError: EMPTY })).to.deep.equal({ waitFor: 'another launcher' });
    const started = stepVmi(failed.next, view);
    if (!('next' in started)) return expect.fail('the guest does not start');
    expect(started.next.status?.phase).to.equal('Running');
    expect(started.next.status?.conditions?.map(({ type }) => type)).not.to.include('Synchronized');
  });
});
