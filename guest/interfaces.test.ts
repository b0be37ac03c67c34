import { expect } from 'chai';
import { nad } from '../test/objects/pool-objects.js';
import { type GuestView, guestInterfacesOf, routeCandidates } from './interfaces.js';
import { type GivenInterface, GuestWorld, guestSpec, guestWorkload } from './testing/guest-world.js';

const MAC = '02:00:00:00:00:01';
const DATA: GivenInterface = { name: 'data', nad: 'data', macAddress: MAC };
const BROKEN = { ok: false, problem: { field: 'spec.config', message: 'is not JSON' } } as const;
const POD: GivenInterface = { name: 'default', nad: 'pod' };

/** Notes the name of each method that is called. */
function countingView(inner: GuestView): { view: GuestView; reads: string[] } {
  const reads: string[] = [];
  const view = new Proxy(inner, {
    get(target, name) {
      const found: unknown = Reflect.get(target, name, target);
      if (typeof found !== 'function') return found;
      reads.push(String(name));
      return found.bind(target) as unknown;
    },
  });
  return { view, reads };
}

describe('the interfaces of a guest', () => {
  let world: GuestWorld;

  beforeEach(() => {
    world = new GuestWorld();
    world.addNetwork('data', [{ cidr: '10.1.0.0/24', gateway: '10.1.0.1' }, { cidr: 'fd00:1::/64' }]);
    world.addClaim('data', ['10.1.0.5/24']);
  });

  function read(...interfaces: GivenInterface[]) {
    return guestInterfacesOf(guestWorkload(guestSpec(interfaces)), world.view);
  }

  it('have the claim of their network and the pool that serves it', () => {
    const [found] = read(DATA);
    expect(found).to.deep.include({ vmNetwork: 'data', isPodNetwork: false, isSriov: false });
    expect(found?.mac).to.deep.equal({ kind: 'mac', mac: MAC });
    expect(found?.source).to.have.nested.property('claim.metadata.name', 'vm1.data');
    expect(found?.source).to.have.nested.property('pool.name', 'data');
    expect(found?.source).to.have.nested.property('nad.delivery.kind', 'guest');
  });

  it('are all listed in the order of the networks, those without a claim too', () => {
    world.addNad('plain', { name: 'plain', type: 'bridge' });
    const found = read(POD, { name: 'other', nad: 'plain' }, DATA);
    expect(found.map(({ vmNetwork, source }) => [vmNetwork, source.kind])).to.deep.equal([
      ['default', 'other'],
      ['other', 'other'],
      ['data', 'claim'],
    ]);
    expect(found.map(({ isPodNetwork }) => isPodNetwork)).to.deep.equal([true, false, false]);
  });

  it('do not include one that is being unplugged', () => {
    expect(read(POD, { ...DATA, state: 'absent' }).map(({ vmNetwork }) => vmNetwork)).to.deep.equal(['default']);
  });

  const pending: { name: string; change: () => void; why: string }[] = [
    { name: 'does not exist yet', change: () => world.claims.delete('vms/vm1.data'), why: 'it does not exist yet' },
    {
      name: 'has no owner yet',
      change: () => {
        const claim = world.addClaim('data', []);
        const { ownerReferences: _owner, annotations: _notes, ...metadata } = claim.metadata;
        world.claims.set({ ...claim, metadata });
      },
      why: 'it is not assigned to the VM yet',
    },
    {
      name: 'may be created when the cache shows its NAD',
      change: () => {
        world.claims.delete('vms/vm1.data');
        world.networks.delete('vms/data');
        world.directory.changed();
      },
      why: 'NetworkAttachmentDefinition vms/data does not exist',
    },
    {
      name: 'may be created when its NAD can be read',
      change: () => {
        world.claims.delete('vms/vm1.data');
        world.networks.set({ ...nad('vms/data', {}), config: BROKEN });
        world.directory.changed();
      },
      why: 'NetworkAttachmentDefinition vms/data cannot be used: spec.config is not JSON',
    },
    {
      name: 'has neither a NAD nor a pool',
      change: () => {
        world.networks.delete('vms/data');
        world.pools.delete('data');
        world.directory.changed();
      },
      why: 'NAD vms/data does not exist',
    },
    {
      name: 'has addresses of a pool that the cache does not show yet',
      change: () => {
        world.pools.delete('data');
        world.directory.changed();
      },
      why: 'no AddressPool with spec.guest serves network data',
    },
    {
      name: 'has no valid pool',
      change: () => world.addNetwork('data', [{ cidr: 'none' }]),
      why: 'AddressPool data is invalid',
    },
  ];
  for (const { name, change, why } of pending) {
    it(`wait for a claim that ${name}`, () => {
      change();
      const [found] = read(DATA);
      expect(found?.source).to.include({ kind: 'pending', claim: 'vm1.data' });
      expect(found?.source).to.have.property('why').that.includes(why);
    });
  }

  it('get their addresses from others if the namespace gets no claims, or another IPAM has the network', () => {
    world.claims.delete('vms/vm1.data');
    world.allowsNewClaims = false;
    expect(read(DATA)[0]?.source).to.deep.equal({ kind: 'other' });
    world.addClaim('ovn', ['10.9.0.5/16']);
    world.addNad('ovn', { name: 'ovn', type: 'ovn-k8s-cni-overlay', allowPersistentIPs: true });
    expect(read({ name: 'ovn', nad: 'ovn' })[0]?.source).to.deep.equal({ kind: 'other' });
  });

  it('name an invalid MAC address, and say which have none', () => {
    const macs = read({ ...DATA, macAddress: 'x'.repeat(99) }, POD).map(({ mac }) => mac);
    expect(macs).to.deep.equal([{ kind: 'invalid', text: 'x'.repeat(99) }, { kind: 'none' }]);
  });

  for (const kind of ['Holdfast', 'kubevirt/ipam-extensions']) {
    it(`cost the same number of reads each, although a VM has many of them with claims of ${kind}`, () => {
      const given = Array.from({ length: 64 }, (_, index): GivenInterface => ({
        name: `net${index}`,
        nad: `net${index}`,
      }));
      for (const { name } of given) {
        world.addNad(name, { name, type: 'bridge', allowPersistentIPs: true });
        const made = world.addClaim(name, []);
        if (kind === 'Holdfast') continue;
        const { annotations: _notes, ...metadata } = made.metadata;
        world.claims.set({ ...made, metadata });
      }
      const { view, reads } = countingView(world.view);
      guestInterfacesOf(guestWorkload(guestSpec(given)), view);
      expect(reads.length).to.be.within(given.length, 4 * given.length + 1);
    });
  }

  it('are candidates for the default route with the gateways of their pools', () => {
    expect(routeCandidates(read(POD, DATA))).to.deep.equal([
      { vmNetwork: 'default', isPodNetwork: true, isServed: false, gateways: [] },
      { vmNetwork: 'data', isPodNetwork: false, isServed: true, gateways: [4] },
    ]);
  });
});
