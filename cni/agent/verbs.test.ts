import { expect } from 'chai';
import type { AddressPool } from '../../api/address-pool.js';
import { VMI_OWNER } from '../../test/objects/launcher-pods.js';
import { adminPool, claimOf } from '../../test/objects/pool-objects.js';
import { parseAddress } from '../../addressing/address/address.js';
import { CniCode, CniError } from './cni-error.js';
import type { PortRules } from './guard/port-guard.js';
import { VerbsWorld } from './testing/verbs-world.js';

const V11 = { cniVersion: '1.1.0' };

describe('the CNI verbs', () => {
  let world: VerbsWorld;

  beforeEach(() => {
    world = new VerbsWorld();
  });

  describe('ADD', () => {
    it('returns the addresses of the claim that the pod may use', async () => {
      world.claim = claimOf('vms/vm1.data', 'vms/blue');
      expect(await world.perform('ADD')).to.deep.include({ cniVersion: '1.0.0', ips: [{ address: '10.0.0.7/24' }] });
      expect(world.steps).to.deep.equal(['grant claimed']);
    });

    it('leases an address to a pod without a claim', async () => {
      expect(await world.perform('ADD')).to.deep.include({ ips: [{ address: '10.0.0.9/24' }] });
      expect(world.steps).to.deep.equal(['grant own']);
    });

    it('records the sandbox before it leases an address', async () => {
      await world.perform('ADD');
      expect(world.recorded).to.deep.equal(['c1 /run/netns/p1 after 0 steps']);
    });

    it('chooses the pool again if it has changed', async () => {
      const confirmed: string[] = [];
      world.confirm = () => {
        confirmed.push(world.claim === undefined ? 'pod' : 'claim');
        // meanwhile its NAD allows persistent addresses, and its claim was created
        world.claim = claimOf('vms/vm1.data', 'vms/blue');
        return false;
      };
      expect(await world.perform('ADD')).to.deep.include({ ips: [{ address: '10.0.0.7/24' }] });
      expect(confirmed).to.deep.equal(['pod']);
      expect(world.steps).to.deep.equal(['grant claimed']);
    });

    it('reads a pool that refuses again, and leases an address if it has grown', async () => {
      world.refused = new CniError(CniCode.TryAgain, 'pool blue is full');
      expect(await world.refusalOf('ADD')).to.equal(world.refused);
      world.confirm = (maxAgeMs) => {
        if (maxAgeMs !== undefined) world.refused = undefined;
        return maxAgeMs === undefined;
      };
      expect(await world.perform('ADD')).to.deep.include({ ips: [{ address: '10.0.0.9/24' }] });
    });

    it('gives a launcher the addresses of its claim if it was created while an address was leased', async () => {
      world.pods[0]!.metadata.ownerReferences = [VMI_OWNER];
      world.lookAgain = () => (world.claim = claimOf('vms/vm1.data', 'vms/blue'));
      expect(await world.perform('ADD')).to.deep.include({ ips: [{ address: '10.0.0.7/24' }] });
      expect(world.steps).to.deep.equal(['grant own', 'release c1 net1', 'grant claimed']);
    });

    it('leases nothing to a pod that may not use its claim', async () => {
      world.authorizationFails = new CniError(CniCode.Refused, 'not yours');
      expect(await world.refusalOf('ADD')).to.include({ code: 100, message: 'not yours' });
      expect(world.steps).to.deep.equal([]);
    });

    it('names the network if no pool serves it', async () => {
      world.pools = [];
      const refusal = await world.refusalOf('ADD');
      expect(refusal.code).to.equal(11);
      expect(refusal.message).to.include('no AddressPool serves network blue');
    });

    it('waits for the caches, and names the missing ones at the deadline', async () => {
      world.missing = 'not listed yet: pods';
      let sync: () => void = () => undefined;
      world.synced = new Promise((resolve) => (sync = resolve));
      const added = world.perform('ADD');
      await Promise.resolve();
      expect(world.steps).to.deep.equal([]);
      sync();
      await added;
      expect(world.steps).to.deep.equal(['grant own']);

      world.synced = new Promise(() => undefined);
      const control = new AbortController();
      const refusal = world.refusalOf('ADD', {}, { signal: control.signal });
      control.abort(new Error('late'));
      expect(await refusal).to.include({ code: 11 });
      expect((await refusal).message)
        .to.include('starting')
        .and.to.include('pods');
    });

    it('waits for the caches without a worker, so that a DEL and STATUS need not wait', async () => {
      world.missing = 'not listed yet: pods';
      let isIdle = false;
      const yieldWorker = async (wait: () => Promise<void>) => {
        isIdle = true;
        await wait();
        isIdle = false;
      };
      let sync: () => void = () => undefined;
      world.synced = new Promise((resolve) => (sync = resolve));
      const added = world.perform('ADD', {}, { signal: new AbortController().signal, yieldWorker });
      expect(isIdle).to.equal(true);
      sync();
      await added;
      expect(isIdle).to.equal(false);
    });

    it('carries out the pending delete of the same interface first', async () => {
      world.notes.add('c1 net1').add('c1 net2');
      await world.perform('ADD');
      expect(world.steps).to.deep.equal(['release c1 net1', 'grant own']);
      expect([...world.notes]).to.deep.equal(['c1 net2']);
    });

    it('fails while the pending delete of the interface cannot be carried out', async () => {
      world.notes.add('c1 net1');
      world.releaseFails = new Error('away');
      expect(await world.perform('ADD').catch((error: unknown) => (error as Error).message)).to.equal('away');
      expect(world.steps).to.deep.equal(['release c1 net1']);
      expect([...world.notes]).to.deep.equal(['c1 net1']);
    });
  });

  describe('ADD of an interface with a guard', () => {
    const rules = (mode: PortRules['mode']): PortRules => {
      const subject = { namespace: 'vms', pod: 'p1', interfaceName: 'net1', pool: 'blue' };
      return { mode, sets: [], chains: [], subject, isGuest: false };
    };

    it('fails if the plugin would ignore rules that it must apply, until it is replaced', async () => {
      world.rules = rules('Enforce');
      world.pluginAppliesGuards = false;
      const refusal = await world.refusalOf('ADD');
      expect(refusal.code).to.equal(CniCode.TryAgain);
      expect(refusal.message).to.include('AddressPool blue').and.to.include('older than the agent');
      world.pluginAppliesGuards = true;
      expect(await world.perform('ADD')).to.deep.include({ ips: [{ address: '10.0.0.9/24' }] });
    });

    it('succeeds without rules that only observe', async () => {
      world.rules = rules('Observe');
      world.pluginAppliesGuards = false;
      expect(await world.perform('ADD')).to.deep.include({ ips: [{ address: '10.0.0.9/24' }] });
    });
  });

  it('DEL releases the leases of the interface and removes its pending delete', async () => {
    world.notes.add('c1 net1');
    expect(await world.perform('DEL', { name: '' })).to.equal(undefined);
    expect(world.steps).to.deep.equal(['release c1 net1']);
    expect([...world.notes]).to.deep.equal([]);
  });

  it('DEL does not wait for the caches', async () => {
    world.missing = 'not listed yet: pods';
    world.synced = new Promise(() => undefined);
    await world.perform('DEL');
    expect(world.steps).to.deep.equal(['release c1 net1']);
  });

  describe('CHECK', () => {
    const result = (...addresses: string[]) => ({ prevResult: { ips: addresses.map((address) => ({ address })) } });

    it('succeeds for leases of the pod', async () => {
      world.held = [parseAddress('10.0.0.9'), parseAddress('fd00::9')];
      await world.perform('CHECK', result('10.0.0.9/24', 'fd00::9/64'));
      expect(world.steps).to.deep.equal([]);
    });

    it('checks the addresses of a claim', async () => {
      world.checked = 'held';
      await world.perform('CHECK', result('10.0.0.7/24'));
      expect(world.steps).to.deep.equal(['check p1 10.0.0.7']);
    });

    it('fails if an address is lost or cannot be checked, and if there is none', async () => {
      world.checked = 'lost';
      expect(await world.refusalOf('CHECK', result('10.0.0.7/24'))).to.include({ code: 100 });
      world.checked = 'unknown';
      const refusal = await world.refusalOf('CHECK', result('10.0.0.7/24'));
      expect(refusal.code).to.equal(11);
      expect(refusal.message).to.include('net1').and.to.include('vms/p1').and.to.include('10.0.0.7');
      expect(await world.refusalOf('CHECK', result())).to.include({ code: 100 });
    });
  });

  it('GC releases the attachments that the runtime does not name, and nothing if it sends no list', async () => {
    await world.perform('GC', { ...V11, 'cni.dev/valid-attachments': [{ containerID: 'c2', ifname: 'net1' }] });
    await world.perform('GC', V11);
    expect(world.steps).to.deep.equal(['collect blue c2 net1']);
  });

  describe('STATUS', () => {
    const filled = (free: number): AddressPool => ({
      ...adminPool('blue'),
      status: { capacity: 254, leased: 254 - free, heldByStopped: 0, cooling: 0, free, reserved: 0 },
    });

    it('succeeds if the network has free addresses', async () => {
      expect(await world.perform('STATUS', V11)).to.equal(undefined);
      world.pools = [filled(1)];
      expect(await world.perform('STATUS', V11)).to.equal(undefined);
    });

    it('succeeds if no pool is known that serves all namespaces, because derived pools are read for pods only', async () => {
      world.pools = [];
      expect(await world.perform('STATUS', V11)).to.equal(undefined);
      const full = filled(0);
      world.pools = [{ ...full, spec: { ...full.spec, namespaces: ['others'] } }];
      expect(await world.perform('STATUS', V11)).to.equal(undefined);
    });

    it('succeeds if only addresses of a family are left that the pool no longer has', async () => {
      const { status, ...pool } = filled(1);
      const ipv6 = { capacity: 1, leased: 1, cooling: 0, free: 0, reserved: 0 };
      world.pools = [{ ...pool, status: { ...status!, ipv4: { ...status! }, ipv6 } }];
      expect(await world.perform('STATUS', V11)).to.equal(undefined);
    });

    const reasons: { name: string; change: () => void; says: string }[] = [
      { name: 'the caches are not filled', change: () => (world.missing = 'not listed yet: pods'), says: 'pods' },
      { name: 'the pool is full', change: () => (world.pools = [filled(0)]), says: 'full: 254 of 254 leased' },
      {
        name: 'one family of the pool is full',
        change: () => {
          const counts = { leased: 2, cooling: 0, reserved: 0 };
          const ipv4 = { ...counts, capacity: 2, free: 0 };
          const ipv6 = { ...counts, capacity: 2 ** 53 - 1, free: 2 ** 53 - 1 };
          const { metadata, spec } = adminPool('blue', { subnets: [{ cidr: '10.0.0.0/30' }, { cidr: 'fd00::/64' }] });
          world.pools = [{ metadata, spec, status: { ...ipv6, leased: 4, heldByStopped: 0, ipv4, ipv6 } }];
        },
        says: 'full for IPv4: 2 of 2 leased',
      },
      {
        name: 'the pool is invalid',
        change: () => (world.pools = [adminPool('blue', { cidr: '10.0.0.1/24' })]),
        says: 'no AddressPool serves network blue: ',
      },
    ];
    for (const { name, change, says } of reasons) {
      it(`fails with code 50 for a network if ${name}`, async () => {
        change();
        const refusal = await world.refusalOf('STATUS', V11);
        expect(refusal.code).to.equal(50);
        expect(refusal.message).to.include(says);
      });
    }
  });

  it('VERSION returns the supported versions', async () => {
    expect(await world.perform('VERSION')).to.deep.equal({
      cniVersion: '1.0.0',
      supportedVersions: ['0.3.0', '0.3.1', '0.4.0', '1.0.0', '1.1.0'],
    });
  });
});
