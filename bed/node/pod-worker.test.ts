import { expect } from 'chai';
import { pino } from 'pino';
import { Client } from '../../kube/client.js';
import { messageOf } from '../../kube/errors.js';
import { EVENTS } from '../../kube/events.js';
import { SECRETS } from '../../kube/resources.js';
import { ManualClock } from '../../test/manual-clock.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import type { SandboxNetworks, SandboxState } from './sandbox-networks.js';
import { PodWorker } from './pod-worker.js';
import type { KubeletPod } from './pod.js';

const POD: KubeletPod = { metadata: { namespace: 'vms', name: 'pod', uid: 'one' }, spec: { nodeName: 'node-1' } };
const RECREATED: KubeletPod = { ...POD, metadata: { ...POD.metadata, uid: 'two' } };

/** Networks that fail with the words given, as often as they are given. */
class FailingNetworks implements SandboxNetworks {
  readonly failures: string[] = [];
  readonly detached: string[] = [];
  readonly #up = new Set<string>();

  stateOf({ metadata }: KubeletPod): SandboxState {
    return this.#up.has(metadata.uid ?? '') ? { state: 'up', ips: ['10.244.1.2'] } : { state: 'none' };
  }

  attach({ metadata }: KubeletPod): Promise<void> {
    const words = this.failures.shift();
    if (words !== undefined) return Promise.reject(new Error(words));
    this.#up.add(metadata.uid ?? '');
    return Promise.resolve();
  }

  update(): Promise<void> {
    return Promise.resolve();
  }

  detach({ metadata }: KubeletPod): Promise<void> {
    const words = this.failures.shift();
    if (words !== undefined) return Promise.reject(new Error(words));
    this.detached.push(metadata.uid ?? '');
    return Promise.resolve();
  }

  forget({ metadata }: KubeletPod): void {
    this.#up.delete(metadata.uid ?? '');
  }
}

describe('The actions of the kubelet for a pod', () => {
  let clock: ManualClock;
  let api: MemoryTransport;
  let networks: FailingNetworks;
  let worker: PodWorker;

  beforeEach(() => {
    clock = new ManualClock(1_000);
    api = new MemoryTransport();
    networks = new FailingNetworks();
    const log = pino({ enabled: false });
    worker = new PodWorker({ client: new Client(api), networks, clock, random: () => 1, log });
  });

  const events = () => [...api.tracker.objects(EVENTS).values()];

  it('report a CNI error once, with increasing delays between attempts', async () => {
    networks.failures.push('pool full', 'pool full', 'pool full');
    const waits: number[] = [];
    for (let attempt = 0; attempt < 3; attempt++) {
      await worker.change(POD, { kind: 'attach' });
      waits.push((worker.view(POD).attachAfter ?? 0) - clock.now());
    }
    expect(waits).to.deep.equal([200, 400, 800]);
    expect(events().map(({ reason }) => reason)).to.deep.equal(['FailedCreatePodSandBox']);
    expect(events()[0]?.message).to.include('pool full');
  });

  it('attach no network of a launcher before the Secrets of its volumes exist', async () => {
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'vm1', uid: 'vmi-uid' };
    const launcher: KubeletPod = {
      metadata: { ...POD.metadata, ownerReferences: [{ ...owner, controller: true }] },
      spec: {
        nodeName: 'node-1',
        volumes: [
          { name: 'root' },
          { name: 'extra', secret: { secretName: 'absent', optional: true } },
          { name: 'cloudinit-ndata', secret: { secretName: 'vm1-net' } },
        ],
      },
    };
    await worker.change(launcher, { kind: 'attach' });
    expect(worker.view(launcher).network).to.deep.equal({ state: 'none' });
    expect(events()).to.have.length(1);
    expect(events()[0]).to.include({
      reason: 'FailedMount',
      message: 'MountVolume.SetUp failed for volume "cloudinit-ndata" : secret "vm1-net" not found',
    });
    const client = new Client(api);
    const ref = { namespace: 'vms', name: 'vm1-net' };
    await client.create(SECRETS, { metadata: ref });
    await worker.change(launcher, { kind: 'attach' });
    expect(worker.view(launcher).network).to.include({ state: 'up' });
    const body = { data: { networkdata: 'dGV4dA==' } };
    await client.patch(SECRETS, ref, { type: 'merge', body });
    expect(worker.mountedIn(launcher)?.get('cloudinit-ndata'), 'a mounted key is never updated').to.deep.equal({});
    await worker.change(launcher, { kind: 'attach' });
    expect(worker.mountedIn(launcher)?.get('cloudinit-ndata')).to.deep.equal(body.data);
  });

  it('report another error too, and have no delay after a success', async () => {
    networks.failures.push('agent away', 'pool full');
    await worker.change(POD, { kind: 'attach' });
    clock.advanceTo(2_000);
    await worker.change(POD, { kind: 'attach' });
    expect(events()).to.have.length(2);
    await worker.change(POD, { kind: 'attach' });
    expect(worker.view(POD)).to.deep.equal({ network: { state: 'up', ips: ['10.244.1.2'] }, attachAfter: undefined });
  });

  it('report an error later if the API server was down', async () => {
    networks.failures.push('pool full', 'pool full');
    api.before = () => Promise.reject(new Error('no API server'));
    await worker.change(POD, { kind: 'attach' });
    expect(worker.view(POD).attachAfter).to.be.greaterThan(clock.now());
    api.before = () => undefined;
    await worker.change(POD, { kind: 'attach' });
    expect(events()).to.have.length(1);
  });

  it('find the sandbox of a pod that was deleted by force, even if another pod has its name', async () => {
    await worker.change(POD, { kind: 'attach' });
    expect(worker.orphans('vms/pod', POD)).to.deep.equal([]);
    expect(worker.orphans('vms/other', undefined)).to.deep.equal([]);
    expect(worker.orphans('vms/pod', undefined)).to.deep.equal([POD]);
    expect(worker.orphans('vms/pod', RECREATED)).to.deep.equal([POD]);
  });

  it('retry an orphan whose networks could not be detached', async () => {
    await worker.change(POD, { kind: 'attach' });
    networks.failures.push('agent away');
    const failed = await worker.removeOrphan(POD).then(
      () => '',
      (error: unknown) => messageOf(error),
    );
    expect(failed).to.equal('agent away');
    expect(worker.orphans('vms/pod', undefined)).to.deep.equal([POD]);
    await worker.removeOrphan(POD);
    expect(networks.detached).to.deep.equal(['one']);
    expect(worker.orphans('vms/pod', undefined)).to.deep.equal([]);
  });
});
