import { expect } from 'chai';
import { CLAIM_NAD, CLAIM_OWNER_NAME, CLAIM_OWNER_UID } from '../../api/names.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import { adminPool, holdfastConfig, nad } from '../../test/objects/pool-objects.js';
import { vmReference } from '../../test/objects/workload-objects.js';
import { IpamModelProcess } from './testing/model/process.js';
import { IpamWorld } from './testing/model/world.js';

/** Six addresses, none of which is the gateway. */
const CIDR = '10.0.0.0/29';
const NUMBERS = [1, 2, 3, 4, 5, 6];

/**
 * Two tenants have a network of the same name. The pool of `victim` serves only its own namespace. The other tenant has equal subnets in an address
 * space of its own, which every tenant may name.
 */
class TwoTenants {
  readonly world = new IpamWorld();
  readonly process: IpamModelProcess;

  constructor() {
    for (const [nadNamespace, addressSpace] of [
      ['victim', 'blue'],
      ['tenant', 'own'],
    ] as const) {
      const given = { nadNamespace, addressSpace, cidr: CIDR, namespaces: [nadNamespace] };
      const { metadata, spec } = adminPool(`blue.${nadNamespace}`, given);
      this.world.create('addresspools', {
        metadata: { name: metadata.name, annotations: metadata.annotations! },
        spec,
      });
    }
    this.process = new IpamModelProcess(this.world, new MemoryTransport(this.world.tracker), [
      nad('victim/blue', holdfastConfig({ subnets: [{ cidr: CIDR }] })),
      nad('tenant/blue', holdfastConfig({ subnets: [{ cidr: CIDR }], addressSpace: 'own' })),
    ]);
  }

  async settle(): Promise<void> {
    for (let round = 0; round < 20; round++) {
      this.process.deliverAll();
      await Promise.resolve();
      while (this.process.queue.size > 0) await this.process.syncNext();
    }
  }

  /** Creates a claim as the controller does. */
  create(key: string, nadNamespace: string, ips?: string[]): void {
    const [namespace = '', vm = ''] = key.split('/');
    const owner = { [CLAIM_OWNER_NAME]: vm, [CLAIM_OWNER_UID]: `${vm}-uid` };
    this.world.create('ipamclaims', {
      metadata: {
        namespace,
        name: vm,
        annotations: { [CLAIM_NAD]: `${nadNamespace}/blue`, ...owner },
        ownerReferences: [vmReference(`${vm}-uid`, vm)],
      },
      spec: { network: 'blue', interface: 'net1' },
      ...(ips && { status: { ips } }),
    });
  }

  serve(namespaces: string[]): void {
    this.world.update('addresspools', 'blue.victim', ({ spec }) => (spec.namespaces = namespaces));
  }

  loseLeases(): void {
    for (const { metadata } of this.world.list('addressleases')) this.world.remove('addressleases', metadata.name);
  }

  ipsOf(key: string): readonly string[] {
    return this.world.get('ipamclaims', key)?.status?.ips ?? [];
  }

  whyOf(key: string): string {
    const [condition] = this.world.get('ipamclaims', key)?.status?.conditions ?? [];
    return `${condition?.reason}: ${condition?.message}`;
  }

  /** Returns the pool and owner of each held lease of a pool. */
  heldFrom(pool: string): string[] {
    const held = this.world.list('addressleases').filter(({ spec }) => spec.pool === pool && !spec.releasedAt);
    return held.map(({ spec }) => `${spec.address} ${spec.owner?.namespace}/${spec.owner?.name}`);
  }
}

const NOT_SERVED = /^PoolNotFound: AddressPool blue\.victim does not serve namespace tenant: /;

describe('a claim whose interface moves to the NAD of another namespace, whose pool does not serve it', () => {
  let scene: TwoTenants;

  /** The tenant's VMs get addresses of its own pool, and then name the NAD of the victim: the controller writes it into their claims. */
  beforeEach(async () => {
    scene = new TwoTenants();
    for (const n of NUMBERS) scene.create(`tenant/t${n}`, 'tenant');
    await scene.settle();
    for (const n of NUMBERS) {
      expect(scene.ipsOf(`tenant/t${n}`)).to.have.length(1);
      scene.world.update('ipamclaims', `tenant/t${n}`, ({ metadata }) => {
        metadata.annotations = { ...metadata.annotations, [CLAIM_NAD]: 'victim/blue' };
      });
    }
    await scene.settle();
  });

  it('does not keep the addresses of that pool from the namespace that it serves', async () => {
    for (const n of NUMBERS) scene.create(`victim/v${n}`, 'victim');
    await scene.settle();
    const refused = NUMBERS.filter((n) => scene.ipsOf(`victim/v${n}`).length === 0);
    expect(refused, scene.whyOf('victim/v1')).to.deep.equal([]);
  });

  it('keeps the leases that it has in its own address space', () => {
    expect(scene.heldFrom('blue.tenant')).to.have.length(NUMBERS.length);
  });

  it('gets no lease of that pool when its own lease is lost, and its condition says why', async () => {
    scene.loseLeases();
    await scene.settle();
    expect(scene.heldFrom('blue.victim')).to.deep.equal([]);
    expect(scene.whyOf('tenant/t1')).to.match(NOT_SERVED);
  });
});

describe('a claim with addresses of a pool that no longer serves its namespace', () => {
  let scene: TwoTenants;

  beforeEach(async () => {
    scene = new TwoTenants();
    scene.serve(['victim', 'tenant']);
    scene.create('tenant/vm1', 'victim', ['10.0.0.4/29']);
    await scene.settle();
    scene.serve(['victim']);
    await scene.settle();
  });

  it('gets its released address back when it is restored', async () => {
    scene.world.remove('ipamclaims', 'tenant/vm1');
    await scene.settle();
    expect(scene.heldFrom('blue.victim')).to.deep.equal([]);
    scene.create('tenant/vm1', 'victim', ['10.0.0.4/29']);
    await scene.settle();
    expect(scene.heldFrom('blue.victim')).to.deep.equal(['10.0.0.4 tenant/vm1']);
  });

  it('gets no other address of the pool under the name of a claim that had one', async () => {
    scene.world.remove('ipamclaims', 'tenant/vm1');
    await scene.settle();
    scene.create('tenant/vm1', 'victim', ['10.0.0.5/29']);
    await scene.settle();
    expect(scene.heldFrom('blue.victim')).to.deep.equal([]);
    expect(scene.whyOf('tenant/vm1')).to.match(NOT_SERVED);
  });

  it('shows a lost address until the pool serves the namespace, and then gets it back', async () => {
    scene.loseLeases();
    await scene.settle();
    expect(scene.ipsOf('tenant/vm1')).to.deep.equal(['10.0.0.4/29']);
    expect(scene.whyOf('tenant/vm1')).to.match(NOT_SERVED);
    scene.serve(['victim', 'tenant']);
    await scene.settle();
    expect(scene.heldFrom('blue.victim')).to.deep.equal(['10.0.0.4 tenant/vm1']);
  });
});
