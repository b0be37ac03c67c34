import { expect } from 'chai';
import { ADDRESS_DRAINING, PROBE_ANNOTATION } from '../../api/names.js';
import { formatProbe } from '../../api/probe.js';
import { ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

const COOLDOWN_MS = 60_000;

describe('syncing the successor of a claim of the same VM', () => {
  let scene: ClaimSyncScenario;
  const settle = () => scene.cluster.settle();

  beforeEach(async () => {
    scene = new ClaimSyncScenario();
    scene.create('b');
    await settle();
  });

  /** Removes claim `a`, which has 10.0.0.3. */
  async function loseClaim(): Promise<void> {
    scene.create('a', { owned: true });
    await settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.3']);
    scene.finish('a');
    await settle();
  }

  describe('that requests nothing, because the controller could not create it at once', () => {
    it('allocates the former address, although others are free', async () => {
      await loseClaim();
      scene.create('c');
      await settle();
      scene.create('a', { owned: true });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.3']);
    });

    it('allocates it although no address is free for an older claim', async () => {
      await loseClaim();
      for (const name of ['c', 'd', 'e'] as const) scene.create(name);
      await settle();
      expect(scene.reasonOf('e')).to.equal('SubnetExhausted');
      scene.create('a', { owned: true });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.3']);
    });

    it('allocates the one that was released last', async () => {
      await loseClaim();
      scene.create('a', { owned: true, request: '["10.0.0.5"]' });
      await settle();
      scene.cluster.world.now += 1000;
      scene.finish('a');
      await settle();
      scene.create('a', { owned: true });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
    });

    for (const last of [0, 1, 2, 3, 4, 5]) {
      it(`allocates it if ipam stops at request ${last}`, async () => {
        await loseClaim();
        scene.create('a', { owned: true });
        scene.failRequest(last, { error: new Error('killed'), applied: last % 2 === 0 });
        await scene.sync('a').catch(() => undefined);
        scene.cluster.api.before = () => undefined;
        scene.cluster.restart(0);
        await settle();
        expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.3']);
        expect(scene.heldBy('a')).to.deep.equal(['10.0.0.3']);
      });
    }

    it('allocates another one in place of one that another claim got after the cool-down', async () => {
      await loseClaim();
      scene.cluster.world.now += COOLDOWN_MS;
      scene.create('c', { request: '["10.0.0.3"]' });
      await settle();
      scene.create('a', { owned: true });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    });

    it('allocates another one in place of one in a draining range', async () => {
      await loseClaim();
      scene.cluster.operate({ do: 'pool', pool: 'draining' });
      scene.create('a', { owned: true });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    });

    it('allocates another one in place of one that another host has', async () => {
      await loseClaim();
      scene.cluster.world.update('addressleases', 'blue.10-0-0-3', ({ metadata }) => {
        metadata.annotations = { [PROBE_ANNOTATION]: formatProbe({ taken: '02:00:00:00:00:99' }) };
      });
      scene.create('a', { owned: true });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    });

    it('allocates the address that is reserved for its MAC address, not the former one', async () => {
      await loseClaim();
      const mac = '02:00:00:00:00:01';
      scene.cluster.operate({ do: 'reserve', address: '10.0.0.6', mac });
      scene.create('a', { owned: true, mac });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.6']);
    });

    it('allocates another one for another VM with a claim of this name', async () => {
      scene.create('a');
      await settle();
      scene.finish('a');
      await settle();
      scene.create('a', { owned: true });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    });
  });

  describe('whose request repeats the former addresses', () => {
    const isFormer = true;

    it('moves out of a range that is drained', async () => {
      scene.create('a', { owned: true, request: '["10.0.0.3"]', isFormer });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.3']);
      scene.cluster.operate({ do: 'pool', pool: 'draining' });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
      expect(scene.claim('a').status?.conditions?.map(({ type }) => type)).to.not.include(ADDRESS_DRAINING);
    });

    it('keeps its new address if the range is no longer drained', async () => {
      scene.create('a', { owned: true, request: '["10.0.0.3"]', isFormer });
      for (const pool of ['draining', 'small'] as const) {
        await settle();
        scene.cluster.operate({ do: 'pool', pool });
      }
      await settle();
      await scene.cluster.coolDown();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.5']);
    });

    it('allocates another address in place of one in a draining range', async () => {
      scene.cluster.operate({ do: 'pool', pool: 'draining' });
      scene.create('a', { owned: true, request: '["10.0.0.3/29"]', isFormer });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    });

    it('allocates another address in place of one that is not in the pool', async () => {
      scene.create('a', { owned: true, request: '["192.0.2.1/24"]', isFormer });
      await settle();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.3']);
    });

    it('waits for an address that another claim has', async () => {
      scene.create('a', { owned: true, request: '["10.0.0.2"]', isFormer });
      await settle();
      expect(scene.reasonOf('a')).to.equal('IPAddressConflict');
      scene.finish('b');
      await settle();
      await scene.cluster.coolDown();
      expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    });
  });
});
