import { expect } from 'chai';
import { NETWORKS_ANNOTATION } from '../../api/names.js';
import type { IPAMClaim } from '../../api/ipam-claim.js';
import type { NodePod } from './node-pods.js';
import { VMI_OWNER } from '../../test/launcher-pods.js';
import { type Address, formatAddress, parseAddress } from '../../addressing/address/address.js';
import type { LeaseRecord } from '../../addressing/lease/lease.js';
import { PoolDirectory } from '../../addressing/directory/directory.js';
import type { AddressPool } from '../../api/address-pool.js';
import { NETWORK_CONFIG, pluginRequest } from '../testing/cni-requests.js';
import { adminPool, cacheOf, claimOf, nad, nadDefinition } from '../../test/pool-objects.js';
import { type Attachment, AttachmentResolver } from './attachment.js';
import type { Grant } from './result.js';
import { CniCode, CniError } from './cni-error.js';
import { sandboxInterfaceKey, readCniRequest } from './request.js';
import { Verbs, type VerbsDeps } from './verbs.js';

const CALL = { signal: new AbortController().signal };
const V11 = { cniVersion: '1.1.0' };

/** Minimal fakes of everything that the verbs use. */
class World {
  readonly steps: string[] = [];
  pods = [pod('blue@net1')];
  /** Called when a launcher has got an address of its own. */
  lookAgain = (): void => expect.fail('an ordinary pod has no claim');
  claim: IPAMClaim | undefined;
  authorizationFails: CniError | undefined;
  held: Address[] = [];
  checked: 'held' | 'lost' | 'unknown' = 'unknown';
  missing: string | undefined;
  synced: Promise<void> = Promise.resolve();
  notes = new Set<string>();
  releaseFails: Error | undefined;
  pools: AddressPool[] = [adminPool('blue')];
  /** Of the NAD vms/blue. */
  config: object = NETWORK_CONFIG;
  /** The addresses that a guard got, or the pool of an interface without one. */
  guarded: string | undefined;
  /** Called before an address is leased; false: the caches have changed. */
  confirm = (): boolean => true;

  perform(command: string, config: object = {}, call = CALL) {
    return new Verbs(this.#deps())
      .perform(readCniRequest(pluginRequest(command, {}, config)), call)
      .then(({ result }) => result);
  }

  async refusalOf(command: string, config: object = {}, call = CALL): Promise<CniError> {
    const error: unknown = await this.perform(command, config, call).catch((thrown: unknown) => thrown);
    if (error instanceof CniError) return error;
    throw new Error('no refusal', { cause: error });
  }

  #deps(): VerbsDeps {
    const pools = cacheOf(this.pools);
    const networks = cacheOf([nad('vms/blue', this.config)]);
    const directory = new PoolDirectory({ pools, networks });
    const find = () => Promise.resolve(this.pods[0]!);
    const get = () => Promise.resolve(nadDefinition('vms/blue', this.config) as never);
    const pods = { find, read: find };
    const resolver = new AttachmentResolver({ pods, networks, client: { get }, multusNamespace: 'multus' });
    const grant =
      (kind: string, address: string) =>
      (attachment: Attachment): Promise<Grant> => {
        this.steps.push(`grant ${kind}`);
        expect(attachment.network).to.equal('blue');
        return Promise.resolve([{ address: parseAddress(address), prefixLength: 24, lease: {} as LeaseRecord }]);
      };
    return {
      pods: { find },
      resolver,
      claims: {
        grant: (attachment) => {
          if (this.authorizationFails !== undefined) return Promise.reject(this.authorizationFails);
          return this.claim === undefined ? Promise.resolve(undefined) : grant('claimed', '10.0.0.7')(attachment);
        },
        hasClaim: () => {
          this.lookAgain();
          return Promise.resolve(this.claim !== undefined);
        },
        check: ({ pod: checked }, addresses) => {
          this.steps.push(`check ${checked?.metadata.name} ${addresses.map(formatAddress).join(' ')}`);
          return Promise.resolve(this.checked);
        },
      },
      leases: {
        grant: grant('own', '10.0.0.9'),
        release: (containerId, interfaceName) => {
          this.steps.push(`release ${sandboxInterfaceKey({ containerId, interfaceName })}`);
          return this.releaseFails === undefined ? Promise.resolve() : Promise.reject(this.releaseFails);
        },
        held: () => Promise.resolve(this.held.map((address) => ({ address }) as never)),
        collect: (network, valid) => {
          this.steps.push(`collect ${network} ${[...valid].join()}`);
          return Promise.resolve();
        },
      },
      directory,
      freshness: { confirm: () => Promise.resolve(this.confirm()) },
      pools,
      pendingDeletes: {
        has: (at) => Promise.resolve(this.notes.has(sandboxInterfaceKey(at))),
        remove: (at) => {
          this.notes.delete(sandboxInterfaceKey(at));
          return Promise.resolve();
        },
      },
      guard: {
        rulesFor: (_attachment, { grant, pool }) => {
          this.guarded = pool ?? grant.map(({ address }) => formatAddress(address)).join();
          return Promise.resolve(undefined);
        },
      },
      readiness: { missing: () => this.missing, synced: () => this.synced },
    };
  }
}

function pod(value: string): NodePod {
  return { metadata: { namespace: 'vms', name: 'p1', uid: 'p1-uid', annotations: { [NETWORKS_ANNOTATION]: value } } };
}

describe('the CNI verbs', () => {
  let world: World;

  beforeEach(() => {
    world = new World();
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

    it('chooses the pool again if the caches were stale', async () => {
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

  describe('of a chained plugin', () => {
    const PREVIOUS = { cniVersion: '1.0.0', interfaces: [{ name: 'net1', sandbox: '/run/netns/p1' }], dns: {} };
    const CHAINED = { type: 'holdfast', bridge: undefined, ipam: undefined, prevResult: PREVIOUS };
    const BRIDGE = { type: 'bridge', bridge: 'br1', disableContainerInterface: true };

    beforeEach(() => {
      const [pool] = world.pools;
      world.pools = [{ ...pool!, spec: { ...pool!.spec, guest: {} } }];
      world.config = { cniVersion: '1.0.0', name: 'blue', plugins: [BRIDGE, { type: 'holdfast' }] };
    });

    it('ADD passes the result on, and guards the addresses of the claim', async () => {
      world.claim = claimOf('vms/vm1.data', 'vms/blue');
      expect(await world.perform('ADD', CHAINED)).to.deep.equal(PREVIOUS);
      expect(world.guarded).to.equal('10.0.0.7');
      expect(world.steps).to.deep.equal(['grant claimed']);
    });

    it('ADD leases no address for a pod without a claim, which the guard of the pool allows none', async () => {
      expect(await world.perform('ADD', CHAINED)).to.deep.equal(PREVIOUS);
      expect(world.guarded).to.equal('blue');
      expect(world.steps).to.deep.equal([]);
    });

    it('ADD fails if no pool serves guests of the network, because its guard is not known', async () => {
      world.pools = [];
      const refusal = await world.refusalOf('ADD', CHAINED);
      expect(refusal).to.include({ code: CniCode.InvalidConfig });
      expect(refusal.message).to.include('no AddressPool with spec.guest serves network blue');
    });

    it('ADD fails if its NAD delegates IPAM to Holdfast, which guards the interface already', async () => {
      const delegating = { ...BRIDGE, ipam: { type: 'holdfast' } };
      world.config = { cniVersion: '1.0.0', name: 'blue', plugins: [delegating, { type: 'holdfast' }] };
      expect((await world.refusalOf('ADD', CHAINED)).message).to.include(
        'guards interfaces by itself: remove the plugin',
      );
    });

    it('ADD fails without the result of the plugin before it', () => {
      const message =
        'prevResult: it is absent: write {"type": "holdfast"} after the plugin that creates the interface';
      expect(() => world.perform('ADD', { ...CHAINED, prevResult: undefined })).to.throw(CniError, message);
    });

    it('ADD fails if its config is not that of the NAD', async () => {
      expect((await world.refusalOf('ADD', { ...CHAINED, more: 1 })).message).to.include('other keys or values');
    });

    it('the other verbs are about no address', async () => {
      world.missing = undefined;
      expect(await world.perform('CHECK', CHAINED)).to.equal(undefined);
      await world.perform('GC', { ...CHAINED, ...V11, 'cni.dev/valid-attachments': [] });
      world.pools = [];
      await world.perform('STATUS', { ...CHAINED, ...V11 });
      expect(world.steps).to.deep.equal([]);
      await world.perform('DEL', CHAINED);
      expect(world.steps).to.deep.equal(['release c1 net1']);
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

    const reasons: { name: string; change: () => void; says: string }[] = [
      { name: 'the caches are not filled', change: () => (world.missing = 'not listed yet: pods'), says: 'pods' },
      { name: 'no pool serves it', change: () => (world.pools = []), says: 'no AddressPool serves network blue' },
      { name: 'the pool is full', change: () => (world.pools = [filled(0)]), says: 'full: 254 of 254 leased' },
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
