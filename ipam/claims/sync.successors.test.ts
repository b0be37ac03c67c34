import { expect } from 'chai';
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
});
