import { expect } from 'chai';
import { objectKey } from '../../../api/meta.js';
import { NETWORKS_ANNOTATION } from '../../../api/names.js';
import { parseAddress } from '../../../addressing/address/address.js';
import { leaseName } from '../../../addressing/lease/lease-name.js';
import { StatusError } from '../../../kube/errors.js';
import type { Attachment } from '../attachment.js';
import { CniError } from '../cni-error.js';
import { AgentWorld, worldWithVm } from '../testing/agent-world.js';
import { makeClaim } from '../../../test/objects/kubevirt-objects.js';
import { adminPool, holdfastConfig, nadDefinition } from '../../../test/objects/pool-objects.js';

const LEASE_NAME = 'blue.10-0-0-5';
const LEASE = `addressleases ${LEASE_NAME}`;
const GRANTED = '10.0.0.5/24';

describe('the addresses of a claim', () => {
  it('come with prefix length and gateway of the pool, IPv4 first', async () => {
    const world = new AgentWorld();
    const subnets = [{ cidr: 'fd00::/64' }, { cidr: '10.0.0.0/23', gateway: '10.0.1.1' }];
    world.pools.set(adminPool('blue', { subnets }));
    world.addVm('vm1', { data: 'blue' }, ['fd00::5/64', '10.0.0.5/24']);
    const attachment = world.attachment(world.launcher());
    const grant = await world.claimed.grant(attachment, world.call());
    expect(grant?.map(({ lease, ...rest }) => ({ ...rest, lease: lease.metadata.name }))).to.deep.equal([
      { address: parseAddress('10.0.0.5'), prefixLength: 23, gateway: parseAddress('10.0.1.1'), lease: LEASE_NAME },
      { address: parseAddress('fd00::5'), prefixLength: 64, lease: leaseName('blue', parseAddress('fd00::5')) },
    ]);
  });

  it('are found in the address space of another pool of the network, to which the lease belongs', async () => {
    const world = worldWithVm();
    world.pools.set(adminPool('blue', { addressSpace: 'fabric' }));
    world.pools.set(adminPool('older', { namespaces: ['elsewhere'], born: 2 }));
    world.addLease(GRANTED, world.claim(), 'blue', 'older');
    expect(await world.add(world.launcher())).to.equal(GRANTED);
    const leases = world.reads.filter((read) => read.startsWith('addressleases'));
    expect(leases).to.deep.equal(['addressleases fabric.10-0-0-5', LEASE]);
  });

  it('are refused if they are of a pool of another namespace, through whose NAD the claim got them', async () => {
    const world = new AgentWorld();
    const ips = [GRANTED, 'fd00::5/64'];
    world.addVm('vm1', { data: 'blue' }, ips);
    for (const id of world.objects.keys()) if (id.startsWith('addressleases')) world.objects.delete(id);
    for (const ip of ips) world.addLease(ip, world.claim(), 'fabric', 'blue.lab');
    const pod = world.launcher();
    world.before = (read) => {
      if (read.includes('owner-uid')) throw new Error('broken');
    };
    expect(await world.add(pod)).to.match(/^11 .*broken/);
    world.before = () => undefined;
    world.reads.length = 0;
    for (let count = 0; count < 2; count++)
      expect(await world.add(pod)).to.match(
        /^100 .* in address space fabric, .* NAD vms\/blue, whose network is not in/,
      );
    const listed = world.reads.filter((read) => read.includes('owner-uid'));
    expect(listed).to.have.length(1);
  });

  it("are granted from an administrator's pool that is new, in another address space", async () => {
    const world = new AgentWorld();
    world.pools.delete('blue');
    const config = { ...holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] }), allowPersistentIPs: true };
    world.put('network-attachment-definitions', nadDefinition('vms/blue', config));
    world.put('addresspools', adminPool('blue.vms', { nadNamespace: 'vms', namespaces: ['vms'] }));
    // the watch is behind: only the API server has it
    world.put('addresspools', adminPool('fabric', { addressSpace: 'fabric' }));
    world.addVm('vm1', { data: 'blue' }, []);
    const claim = world.addClaim(makeClaim('vm1', 'data', { nad: 'vms/blue' }), [GRANTED]);
    world.remove('addressleases', LEASE_NAME);
    world.addLease(GRANTED, claim, 'fabric', 'fabric');
    expect(await world.add(world.launcher())).to.equal(GRANTED);
  });

  /** The pool of the NAD serves only its own namespace. The controller has written this NAD into the claim, because the VM names it. */
  const foreign: { name: string; addressSpace: string; pool: string; expect: RegExp }[] = [
    {
      name: 'are refused on the NAD of another namespace if they are in another address space',
      addressSpace: 'own',
      pool: 'blue.vms',
      expect: /^100 .* in address space own, .* NAD shared\/blue, whose network is not in this address space/,
    },
    {
      name: 'are kept on the NAD of another namespace whose pool no longer serves that of the VM',
      addressSpace: 'blue',
      pool: 'blue.shared',
      expect: /^10\.0\.0\.5\/24$/,
    },
  ];
  for (const { name, addressSpace, pool, expect: expected } of foreign) {
    it(name, async () => {
      const world = new AgentWorld();
      world.pools.set(adminPool('blue', { namespaces: ['elsewhere'] }));
      const config = { ...holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] }), allowPersistentIPs: true };
      world.put('network-attachment-definitions', nadDefinition('shared/blue', config));
      world.put('addresspools', adminPool('blue.shared', { nadNamespace: 'shared', namespaces: ['shared'] }));
      world.put('addresspools', adminPool('blue.vms', { nadNamespace: 'vms', addressSpace: 'own' }));
      world.addVm('vm1', { data: 'shared/blue' }, []);
      const claim = world.addClaim(makeClaim('vm1', 'data', { nad: 'shared/blue' }), [GRANTED]);
      world.remove('addressleases', LEASE_NAME);
      world.addLease(GRANTED, claim, addressSpace, pool);
      expect(await world.add(world.launcher('vm1', { networks: { data: 'shared/blue' } }))).to.match(expected);
    });
  }

  it('are listed by their claim only if no pool that may serve it has them', async () => {
    const world = worldWithVm();
    await world.add(world.launcher());
    expect(world.reads.filter((read) => read.includes('owner-uid'))).to.deep.equal([]);
  });

  it('are listed for a request whose predecessor has given up the same list', async () => {
    const world = worldWithVm();
    world.remove('addressleases', LEASE_NAME);
    world.addLease(GRANTED, world.claim(), 'fabric', 'blue.lab');
    const hanging: (() => void)[] = [];
    world.before = (read) => (read.includes('owner-uid') ? new Promise((end) => void hanging.push(end)) : undefined);
    const attachment = world.attachment(world.launcher());
    const givesUp = new AbortController();
    const first = world.claimed.grant(attachment, { signal: givesUp.signal }).catch(String);
    const second = world.claimed.grant(attachment, { signal: new AbortController().signal }).catch(String);
    while (hanging.length === 0) await new Promise(setImmediate);
    givesUp.abort(new Error('time is up'));
    expect(await first).to.include('time is up');
    for (const end of hanging) end();
    expect(await second).to.include('in address space fabric');
    expect(world.reads.filter((read) => read.includes('owner-uid'))).to.have.length(1);
  });

  const obstacles: { name: string; spoil: (world: AgentWorld) => void; expect: RegExp }[] = [
    {
      name: 'the claim has no addresses yet',
      spoil: (world) => void world.put('ipamclaims', makeClaim('vm1', 'data')),
      expect: /^11 IPAMClaim vms.vm1.data has no addresses yet; timeout/,
    },
    {
      name: 'the pool is full',
      spoil: (world) => {
        const claim = world.addClaim(makeClaim('vm1', 'data'), []);
        Object.assign(claim.status!.conditions![0]!, { status: 'False', message: 'Pool blue is full' });
      },
      expect: /^11 IPAMClaim vms.vm1.data has no addresses yet: Pool blue is full; timeout/,
    },
    {
      name: 'the lease was deleted',
      spoil: (world) => world.remove('addressleases', 'blue.10-0-0-5'),
      expect: /^11 .* does not hold its addresses: there is no lease of 10.0.0.5; timeout/,
    },
    {
      name: 'another claim holds the lease',
      spoil: (world) => void world.addLease('10.0.0.5/24', makeClaim('vm2', 'data')),
      expect: /^11 .* 10.0.0.5 is allocated to IPAMClaim vms.vm2.data; timeout/,
    },
    {
      name: 'the lease is released',
      spoil: (world) => {
        const lease = world.addLease('10.0.0.5/24', makeClaim('vm1', 'data'));
        lease.spec.releasedAt = '2026-01-01T00:00:00Z';
      },
      expect: /^11 .* AddressLease blue.10-0-0-5 was released at 2026-01-01T00:00:00.000Z/,
    },
    {
      name: 'a deleted claim of the same name holds the lease',
      spoil: (world) => {
        const claim = makeClaim('vm1', 'data');
        world.put('ipamclaims', { ...world.claim(), metadata: { ...claim.metadata, uid: 'new-uid' } });
      },
      expect: /^11 .* 10.0.0.5 is allocated to IPAMClaim vms.vm1.data, a deleted claim of the same name/,
    },
  ];
  for (const { name, spoil, expect: expected } of obstacles) {
    it(`are not returned if ${name}`, async () => {
      const world = worldWithVm();
      spoil(world);
      expect(await world.add(world.launcher(), 0, world.call(2_000))).to.match(expected);
    });
  }

  it('are those of the current claim if it was recreated since it was read', async () => {
    const world = worldWithVm();
    const pod = world.launcher();
    expect(await world.add(pod)).to.equal(GRANTED);
    const claim = makeClaim('vm1', 'data');
    claim.metadata.uid = 'new-uid';
    world.remove('addressleases', 'blue.10-0-0-5');
    world.addClaim(claim, ['10.0.0.8/24']);
    expect(await world.add(pod)).to.equal('10.0.0.8/24');
  });

  it('are refused if another owner has recreated the claim', async () => {
    const world = worldWithVm();
    const pod = world.launcher();
    expect(await world.add(pod)).to.equal(GRANTED);
    const stranger = makeClaim('vm1', 'data', { ownerUid: 'stranger' });
    stranger.metadata.uid = 'new-uid';
    world.addClaim(stranger, ['10.0.0.5/24']);
    expect(await world.add(pod)).to.match(/^11 .*belongs to another VirtualMachine vm1; the VM starts/);
  });

  it('are refused to an interface that requests addresses', async () => {
    const world = worldWithVm();
    const pod = world.launcher();
    const refusalOf = async (attachment: Attachment): Promise<CniError> => {
      const error: unknown = await world.claimed.grant(attachment, world.call()).catch((thrown: unknown) => thrown);
      if (error instanceof CniError) return error;
      throw new Error('no refusal', { cause: error });
    };
    const attachment = world.attachment(pod);
    const { code, message } = await refusalOf({ ...attachment, requested: [parseAddress('10.0.0.8')] });
    expect(code).to.equal(100);
    const [subject, remedy] = [
      `interface ${attachment.interfaceName} of pod ${objectKey(pod)}`,
      'network.kubevirt.io/addresses',
    ];
    for (const words of [subject, '10.0.0.8', 'vm1.data', '4.1.2.1.11', remedy]) expect(message).to.include(words);
    const [element] = JSON.parse(pod.metadata.annotations![NETWORKS_ANNOTATION]!) as object[];
    pod.metadata.annotations![NETWORKS_ANNOTATION] = JSON.stringify([{ ...element, ips: ['10.0.0.8'] }]);
    expect((await refusalOf(world.attachment(pod))).code).to.equal(100);
    expect(world.reads).not.to.include(LEASE);
  });

  it('cost an agent without cached reads one read per object', async () => {
    const world = worldWithVm();
    await world.add(world.launcher('vm1', { references: { data: 'vm1.data' } }));
    expect(world.reads).to.deep.equal([...new Set(world.reads)]);
    expect(world.reads).to.include(LEASE);
  });

  it('fail with the message of the API server if a read is forbidden', async () => {
    const world = worldWithVm();
    const pod = world.launcher();
    await world.add(pod);
    world.fault = new StatusError({ request: 'GET x', status: 403, reason: 'Forbidden', message: 'no' });
    expect(await world.add(pod)).to.match(/^11 a read from the API server failed.*403 Forbidden/);
  });
});
