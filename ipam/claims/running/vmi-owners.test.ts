import { expect } from 'chai';
import type { VirtualMachineInstance } from '../../../api/kubevirt.js';
import type { Client } from '../../../kube/client.js';
import { StatusError, TransportError } from '../../../kube/errors.js';
import { silentLogger } from '../../../kube/log.js';
import type { ObjectRef } from '../../../kube/resource.js';
import { KNOWN_KUBEVIRT } from '../../../test/objects/launcher-pods.js';
import { claim, vmReference, vmi, vmiReference } from '../../../test/objects/workload-objects.js';
import type { KubeVirtController } from '../../../cluster/kubevirt-controller.js';
import type { ClaimPod } from './claim-pods.js';
import { RECHECK_VMI_MS, VmiOwners } from './vmi-owners.js';

function pod(name: string, uid: string, vmiName = 'vm1'): ClaimPod {
  return {
    metadata: { name, namespace: 'vms', uid: name },
    isTerminal: false,
    claims: [],
    vmi: { name: vmiName, uid },
  };
}

/** An API server with at most one VMI. */
class World {
  vmi: VirtualMachineInstance | undefined;
  fault: Error | undefined;
  now = 0;
  readonly reads: string[] = [];
  kubevirt: KubeVirtController = KNOWN_KUBEVIRT.controller();
  readonly owners = new VmiOwners({
    kubevirt: { controller: () => this.kubevirt },
    client: { get: ((_resource, ref) => this.#get(ref)) as Client['get'] },
    clock: { now: () => this.now },
    log: silentLogger,
  });

  /**
   * Does what a claim's sync does: verifies, reads if it must, and verifies again.
   * @returns the UIDs of pods that are verified
   */
  async verifiedPods(pods: ClaimPod[], of = claim()): Promise<string[]> {
    const { vmisToRead } = this.owners.verify(pods, of);
    if (vmisToRead.size > 0) await this.owners.readVmi({ claim: of, uids: vmisToRead }, {});
    return [...this.owners.verify(pods, of).verifiedPods];
  }

  async #get({ namespace, name }: ObjectRef): Promise<unknown> {
    await Promise.resolve();
    this.reads.push(`${namespace ?? ''}/${name}`);
    if (this.fault !== undefined) throw this.fault;
    if (this.vmi !== undefined) return this.vmi;
    const details = { name, kind: 'virtualmachineinstances', group: 'kubevirt.io' };
    throw new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'not found', details });
  }
}

describe('the VMIs that launchers name', () => {
  let world: World;

  beforeEach(() => {
    world = new World();
    world.vmi = vmi({}, { uid: 'vmi-uid', vm: 'vm-uid' });
  });

  it('verify a pod whose VMI, by UID, belongs to the VM that owns the claim, with one read', async () => {
    expect(await world.verifiedPods([pod('a', 'vmi-uid'), pod('b', 'vmi-uid')])).to.deep.equal(['a', 'b']);
    expect(await world.verifiedPods([pod('a', 'vmi-uid')])).to.deep.equal(['a']);
    expect(world.reads).to.deep.equal(['vms/vm1']);
  });

  it('do not verify a pod by the name alone, and cost one read however many UIDs are forged', async () => {
    const forged = Array.from({ length: 50 }, (_, index) => pod(`p${index}`, `forged-${index}`));
    expect(await world.verifiedPods(forged)).to.deep.equal([]);
    expect(await world.verifiedPods(forged)).to.deep.equal([]);
    expect(world.reads).to.have.length(1);
  });

  it('do not verify a pod if the VMI belongs to another VM of that name', async () => {
    world.vmi = vmi({}, { uid: 'vmi-uid', vm: 'another-vm' });
    expect(await world.verifiedPods([pod('a', 'vmi-uid')])).to.deep.equal([]);
  });

  it('are not read for pods of another VMI, nor for a claim without an owning VM', async () => {
    expect(await world.verifiedPods([pod('a', 'vmi-uid', 'vm2')])).to.deep.equal([]);
    const unowned = claim({ owner: null, recordedOwner: null });
    expect(await world.verifiedPods([pod('a', 'vmi-uid')], unowned)).to.deep.equal([]);
    expect(world.reads).to.deep.equal([]);
  });

  it('need no read for the claim of a VMI without a VM, because it has the UID of the VMI', async () => {
    expect(await world.verifiedPods([pod('a', 'alone')], claim({ owner: vmiReference('alone') }))).to.deep.equal(['a']);
    expect(world.reads).to.deep.equal([]);
  });

  for (const [name, fault] of [
    ['the API server is away', new TransportError('unsent', 'connection refused')],
    [
      'the API server does not serve VMIs',
      new StatusError({ request: 'GET', status: 404, reason: 'NotFound', message: 'page not found' }),
    ],
  ] as const) {
    it(`are unreadable and verify no pod while ${name}, and are read again later`, async () => {
      const unreadable = () => [...world.owners.verify([pod('a', 'vmi-uid')], claim()).unreadableVmis];
      world.fault = fault;
      expect(await world.verifiedPods([pod('a', 'vmi-uid')])).to.deep.equal([]);
      expect(unreadable()).to.deep.equal(['vmi-uid']);
      world.fault = undefined;
      world.now += RECHECK_VMI_MS - 1;
      expect(await world.verifiedPods([pod('a', 'vmi-uid')])).to.deep.equal([]);
      world.now += 1;
      expect(await world.verifiedPods([pod('a', 'vmi-uid')])).to.deep.equal(['a']);
      expect(unreadable()).to.deep.equal([]);
    });
  }

  it('are read at once for the launcher of a VM that has been restarted', async () => {
    await world.verifiedPods([pod('a', 'vmi-uid')]);
    world.vmi = vmi({}, { uid: 'next', vm: 'vm-uid' });
    expect(await world.verifiedPods([pod('b', 'next')])).to.deep.equal(['b']);
  });

  it('do not verify a pod that another user created, even if its VMI belongs to the VM', async () => {
    const creator = 'system:serviceaccount:vms:kubevirt-controller';
    const pods = [{ ...pod('thief', 'vmi-uid'), creator }, pod('real', 'vmi-uid')];
    expect(await world.verifiedPods(pods)).to.deep.equal(['real']);
  });

  it('keep a pod among those of the claim only if KubeVirt created it, or if the creator of launchers is unknown', () => {
    const creator = 'system:serviceaccount:vms:kubevirt-controller';
    const pods = [{ ...pod('thief', 'vmi-uid'), creator }, pod('real', 'vmi-uid')];
    expect(world.owners.createdByKubeVirt(pods)).to.deep.equal([pods[1]]);
    world.kubevirt = { problem: 'kubevirtNamespace is wrong' };
    expect(world.owners.createdByKubeVirt(pods)).to.deep.equal(pods);
  });

  it('verify no pod while the creator of launchers is unknown, and cost no read', async () => {
    world.kubevirt = { problem: 'kubevirtNamespace is wrong' };
    expect(await world.verifiedPods([pod('a', 'vmi-uid')])).to.deep.equal([]);
    expect(world.owners.verify([pod('a', 'vmi-uid')], claim()).problem).to.equal('kubevirtNamespace is wrong');
    expect(world.reads).to.deep.equal([]);
  });

  it('are verified for the new owner after another VM has adopted the claim', async () => {
    await world.verifiedPods([pod('a', 'vmi-uid')]);
    world.vmi = vmi({}, { uid: 'vmi-uid', vm: 'vm-2' });
    const adopted = claim({ owner: vmReference('vm-2') });
    expect(await world.verifiedPods([pod('a', 'vmi-uid')], adopted)).to.deep.equal([]);
    world.now += RECHECK_VMI_MS;
    expect(await world.verifiedPods([pod('a', 'vmi-uid')], adopted)).to.deep.equal(['a']);
  });
});
