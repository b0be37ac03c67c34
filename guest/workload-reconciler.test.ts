import { expect } from 'chai';
import type { IPAMClaim } from '../api/ipam-claim.js';
import type { VirtualMachine, VirtualMachineInstance } from '../api/kubevirt.js';
import type { KubeObject } from '../api/meta.js';
import { GUEST_CONFIGURED, NETWORK_DATA_ANNOTATION, NETWORK_DATA_WRITTEN } from '../api/names.js';
import { conditionOf } from '../cluster/claim-conditions.js';
import { VMI_INDEXES, VM_INDEXES } from '../cluster/indexes.js';
import { createLease } from '../ipam/core/lease.js';
import { parseAddress } from '../ipam/core/address.js';
import { Cache } from '../kube/cache.js';
import type { Sync, SyncResult } from '../kube/controller-loop.js';
import type { Secret } from '../kube/resources.js';
import type { Resource } from '../kube/resource.js';
import { apiError } from '../test/api-errors.js';
import { NAMESPACE, claim as workloadClaim } from '../test/workload-objects.js';
import { GuestWorld, guestSpec } from './testing/guest-world.js';
import type { GuestMetrics } from './metrics.js';
import type { GuestViews } from './views.js';
import { BY_SECRET, secretKeysOf } from './watch-specs.js';
import { WorkloadReconciler } from './workload-reconciler.js';

const MAC = '02:00:00:00:00:01';
const VMI_RUNS = {
  phase: 'Running',
  interfaces: [{ name: 'data', infoSource: 'domain, guest-agent', ipAddresses: ['10.1.0.7'] }],
};

/** The API server, with the admission policy for Secrets, and the caches of the process. */
class World extends GuestWorld {
  readonly vms = new Cache<VirtualMachine>({ ...VM_INDEXES, [BY_SECRET]: secretKeysOf });
  readonly vmis = new Cache<VirtualMachineInstance>({ ...VMI_INDEXES, [BY_SECRET]: secretKeysOf });
  readonly namespaces = new Cache<KubeObject>();
  readonly secrets = new Map<string, Secret>();
  readonly leases = new Map<string, KubeObject>();
  readonly requests: string[] = [];
  readonly events: string[] = [];
  readonly counted = { misconfigured: 0, notWritten: new Map<string, number>(), written: 0 };
  now = 0;

  reconciler(): WorkloadReconciler {
    const watched = Object.fromEntries(
      ['vms', 'vmis', 'claims', 'networks', 'namespaces', 'pools'].map((kind) => [
        kind,
        { cache: this[kind as 'vms'], onChange: () => undefined },
      ]),
    );
    const views = { watched, directory: this.directory, gate: { isOpen: () => true }, onGateChange: () => 0 };
    return new WorkloadReconciler({
      views: views as unknown as GuestViews,
      client: this as never,
      config: { namespace: 'holdfast-system', guestGraceMs: 60_000 },
      clock: { now: () => this.now, wall: () => this.now } as never,
      events: {
        event: (subject, type, reason, message) => this.events.push(`${subject.kind} ${type} ${reason} ${message}`),
      },
      metrics: this.#metrics(),
    });
  }

  #metrics(): GuestMetrics {
    const { notWritten } = this.counted;
    const count = (reason: string | undefined, more: number) =>
      reason !== undefined && notWritten.set(reason, (notWritten.get(reason) ?? 0) + more);
    return {
      misconfigured: (more) => (this.counted.misconfigured += more),
      notWritten: (before, after) => {
        count(before, -1);
        count(after, 1);
      },
      written: () => (this.counted.written += 1),
      clear: () => undefined,
    };
  }

  addVm(name: string, options: { secret?: string; annotation?: string; created?: string; uid?: string } = {}): void {
    const { secret = 'net', annotation = secret, created = '2026-01-01T00:00:00Z', uid = 'vm-uid' } = options;
    const spec = guestSpec(
      [{ name: 'data', nad: 'data', macAddress: MAC }],
      [{ cloudInitNoCloud: { networkDataSecretRef: { name: secret } } }],
    );
    this.vms.set({
      metadata: { name, namespace: NAMESPACE, uid, creationTimestamp: created },
      spec: { template: { metadata: { annotations: { [NETWORK_DATA_ANNOTATION]: annotation } }, spec } },
    });
  }

  addVmi(uid: string, status: VirtualMachineInstance['status']): void {
    const controller = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachine',
      name: 'vm1',
      uid: 'vm-uid',
      controller: true,
    };
    const metadata = { name: 'vm1', namespace: NAMESPACE, uid, ownerReferences: [controller] };
    this.vmis.set({ metadata, ...(status && { status }) });
  }

  addLease(text: string, { metadata: { name, uid = '' } }: IPAMClaim): void {
    const owner = { kind: 'IPAMClaim' as const, namespace: NAMESPACE, name, uid };
    const write = createLease({ address: parseAddress(text), addressSpace: 'data', pool: 'data', owner });
    if (write.verb !== 'create') throw new TypeError('a new lease is created');
    const { lease } = write;
    this.leases.set(lease.metadata.name, {
      ...lease,
      metadata: { ...lease.metadata, uid: text, resourceVersion: '1' },
    });
  }

  create(resource: Resource, object: Secret): Promise<KubeObject> {
    const { name } = object.metadata;
    this.requests.push(`create ${resource.plural} ${name}`);
    if (this.secrets.has(name)) return Promise.reject(apiError(409, 'AlreadyExists', 'exists', name));
    this.secrets.set(name, object);
    return Promise.resolve(object);
  }

  patch(resource: Resource, { name }: { name: string }, { body }: { body: Secret & IPAMClaim }): Promise<KubeObject> {
    this.requests.push(`patch ${resource.plural} ${name}`);
    if (resource.plural === 'secrets') return this.#patchSecret(name, body);
    const claim = this.claims.get(`${NAMESPACE}/${name}`)!;
    const changed = { ...claim, status: { ...claim.status, ...body.status } } as IPAMClaim;
    this.claims.set(changed);
    return Promise.resolve(changed);
  }

  #patchSecret(name: string, body: Secret): Promise<KubeObject> {
    const before = this.secrets.get(name)!;
    const same = JSON.stringify(before.metadata.labels) === JSON.stringify(body.metadata.labels);
    if (before.type !== 'ipam.holdfast.dev/network-data' || !same)
      return Promise.reject(apiError(403, 'Forbidden', 'denied', name));
    const changed = { ...before, ...(body.data && { data: body.data }) };
    this.secrets.set(name, changed);
    return Promise.resolve(changed);
  }

  find(_resource: Resource, { name }: { name: string }): Promise<KubeObject | undefined> {
    return Promise.resolve(this.leases.get(name));
  }

  get textOfSecret(): string {
    return Buffer.from(this.secrets.get('net')?.data?.networkdata ?? '', 'base64').toString();
  }

  condition(type: string) {
    return conditionOf(this.claims.get(`${NAMESPACE}/vm1.data`)!, type);
  }
}

describe('the reconciler of workloads', () => {
  let world: World;
  let run: Sync;

  beforeEach(() => {
    world = new World();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1' }]);
    world.addVm('vm1');
    world.addLease('10.1.0.5', world.addClaim('data', ['10.1.0.5/24']));
    run = world.reconciler().createSync();
  });

  function sync(key = 'vms/vm1'): Promise<SyncResult> {
    return (run as (key: string, signal: AbortSignal) => Promise<SyncResult>)(key, new AbortController().signal);
  }

  it('creates the Secret of a VM, says so in the condition, and then writes nothing more', async () => {
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.5/24');
    expect(world.secrets.get('net')).to.deep.include({ type: 'ipam.holdfast.dev/network-data' });
    expect(world.secrets.get('net')?.metadata).to.deep.equal({
      name: 'net',
      namespace: NAMESPACE,
      labels: { 'ipam.holdfast.dev/workload-uid': 'vm-uid' },
      ownerReferences: [{ apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'vm1', uid: 'vm-uid' }],
    });
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'True', reason: 'Written' });
    expect(world.condition(NETWORK_DATA_WRITTEN)?.message).to.include('when its VM is stopped and started');
    const { length } = world.requests;
    await sync();
    expect(world.requests).to.have.length(length);
  });

  it('patches the Secret after a change, after a restart of the process, and when the VM starts', async () => {
    await sync();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24', gateway: '10.1.0.2' }]);
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.2');
    world.addVmi('vmi-1', undefined);
    world.secrets.delete('net');
    await sync();
    expect(world.textOfSecret).to.include('10.1.0.2');
    run = world.reconciler().createSync();
    await sync();
    expect(world.requests.filter((each) => each.includes('secrets'))).to.deep.equal([
      'create secrets net',
      ...['create secrets net', 'patch secrets net'],
      'create secrets net',
      ...['create secrets net', 'patch secrets net'],
    ]);
  });

  it('writes no address that is not leased to the claim, as after a restored backup, and looks again', async () => {
    world.leases.clear();
    expect(await sync()).to.deep.equal({ requeueAfterMs: 5_000 });
    expect(world.secrets.size).to.equal(0);
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'False', reason: 'AddressesPending' });
    expect([...world.counted.notWritten]).to.deep.equal([['AddressesPending', 1]]);
    world.addLease('10.1.0.5', world.claims.get('vms/vm1.data')!);
    await sync();
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'True' });
    expect([...world.counted.notWritten]).to.deep.equal([['AddressesPending', 0]]);
  });

  it('reads lost leases ever less often, at most once a minute', async () => {
    world.leases.clear();
    for (const requeueAfterMs of [5_000, 10_000, 20_000, 40_000, 60_000, 60_000])
      expect(await sync()).to.deep.equal({ requeueAfterMs });
  });

  it('leaves a Secret of somebody else alone', async () => {
    for (const [index, existing] of [
      { type: 'Opaque', metadata: { name: 'net', labels: { 'ipam.holdfast.dev/workload-uid': 'vm-uid' } } },
      {
        type: 'ipam.holdfast.dev/network-data',
        metadata: { name: 'net', labels: { 'ipam.holdfast.dev/workload-uid': 'x' } },
      },
    ].entries()) {
      world.secrets.set('net', { ...existing, data: { networkdata: 'e30=' } });
      expect(await sync()).to.deep.equal({ requeueAfterMs: [30_000, 60_000][index] });
      expect(world.secrets.get('net')?.data).to.deep.equal({ networkdata: 'e30=' });
      expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'False', reason: 'SecretForeign' });
    }
  });

  it('gives a Secret that two VMs name to the older one', async () => {
    world.addVm('vm0', { uid: 'vm0-uid', created: '2025-01-01T00:00:00Z' });
    await sync();
    expect(world.secrets.size).to.equal(0);
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.deep.include({
      reason: 'SecretShared',
      message: 'Secret net has the network data of VM "vm0": name another Secret',
    });
    world.vms.delete('vms/vm0');
    await sync();
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({ status: 'True' });
  });

  it('writes a Secret that very many VMs name for none of them', async () => {
    for (let index = 0; index < 16; index++) world.addVm(`copy-${index}`, { uid: `copy-${index}` });
    await sync();
    expect(world.secrets.size).to.equal(0);
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.include({
      reason: 'SecretShared',
      message: 'More than 16 VMs name Secret net: name another Secret',
    });
  });

  it('removes the condition when the VM opts out', async () => {
    await sync();
    world.addVm('vm1', { annotation: '' });
    await sync();
    expect(world.condition(NETWORK_DATA_WRITTEN)).to.equal(undefined);
  });

  it('writes no condition to a claim without a status', async () => {
    world.claims.set(workloadClaim({ vmNetwork: 'data', network: 'data', nad: 'vms/data' }));
    await sync();
    expect(world.requests).to.deep.equal([]);
  });

  it('keeps the conditions of others, and reports once on the VM that its guest has another address', async () => {
    const allocated = {
      type: 'IPsAllocated',
      status: 'True',
      reason: 'a',
      message: 'b',
      lastTransitionTime: 'c',
    } as const;
    const claim = world.claims.get('vms/vm1.data')!;
    world.claims.set({ ...claim, status: { ips: ['10.1.0.5/24'], conditions: [allocated] } });
    world.addNetwork('data', [{ cidr: '10.1.0.0/24' }], {}, { disableContainerInterface: true });
    world.addVmi('vmi-1', VMI_RUNS);
    expect(await sync()).to.deep.equal({ requeueAfterMs: 60_000 });
    expect(world.condition(GUEST_CONFIGURED)).to.equal(undefined);
    world.now = 60_000;
    await sync();
    await sync();
    expect(world.condition('IPsAllocated')).to.deep.equal(allocated);
    expect(world.condition(GUEST_CONFIGURED)).to.include({ status: 'False', reason: 'OtherAddress' });
    expect(world.counted.misconfigured).to.equal(1);
    expect(world.events).to.deep.equal([
      'VirtualMachine Warning GuestMisconfigured The guest has 10.1.0.7 on "data", its claim says 10.1.0.5: renew DHCP, or restart the VM',
    ]);
    world.vms.delete('vms/vm1');
    world.vmis.delete('vms/vm1');
    await sync();
    expect(world.counted.misconfigured).to.equal(0);
  });
});
