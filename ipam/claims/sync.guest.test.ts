import { expect } from 'chai';
import type { GuestOptions } from '../../api/address-pool.js';
import { CLAIM_NAD } from '../../api/names.js';
import { type Name, ClaimSyncScenario } from './testing/model/claim-sync-scenario.js';

describe('syncing claims of a network with and without IPAM', () => {
  let scene: ClaimSyncScenario;

  beforeEach(() => {
    scene = new ClaimSyncScenario();
    setGuest({});
  });

  function setGuest(guest: GuestOptions | undefined): void {
    scene.cluster.world.update('addresspools', 'blue', ({ spec }) => {
      if (guest === undefined) delete spec.guest;
      else spec.guest = guest;
    });
  }

  /** Lets the VM of the claim move to another NAD of the network, as the controller does while it is stopped. */
  function swapNad(name: Name, nad: 'blue' | 'layer2'): void {
    scene.cluster.world.update('ipamclaims', `vms/${name}`, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [CLAIM_NAD]: `vms/${nad}` };
    });
  }

  function createOnLayer2(name: Name): void {
    scene.create(name, { owned: true });
    swapNad(name, 'layer2');
  }

  it('never leases one address for both NADs', async () => {
    scene.create('a', { owned: true });
    createOnLayer2('b');
    scene.create('c', { owned: true });
    createOnLayer2('d');
    await scene.cluster.settle();
    const ips = (['a', 'b', 'c', 'd'] as const).flatMap((name) => scene.ipsOf(name) ?? []);
    expect(new Set(ips).size).to.equal(4);
    expect(scene.leases.sort()).to.deep.equal(ips.sort());
  });

  for (const [first, second] of [
    ['blue', 'layer2'],
    ['layer2', 'blue'],
  ] as const) {
    it(`gives the last free address to NAD ${second} only after the claim on NAD ${first} is gone`, async () => {
      for (const name of ['a', 'b', 'c', 'd', 'e'] as const) scene.create(name, { owned: true });
      swapNad('d', first);
      swapNad('e', second);
      await scene.cluster.settle();
      expect(scene.ipsOf('d')).to.have.length(1);
      expect(scene.reasonOf('e')).to.equal('SubnetExhausted');
      const ips = scene.ipsOf('d');
      scene.finish('d');
      await scene.cluster.settle();
      await scene.cluster.coolDown();
      expect(scene.ipsOf('e')).to.deep.equal(ips);
    });

    it(`keeps the address when the VM moves from NAD ${first} to NAD ${second}`, async () => {
      scene.create('a', { owned: true });
      swapNad('a', first);
      await scene.cluster.settle();
      const ips = scene.ipsOf('a');
      expect(ips).to.have.length(1);
      swapNad('a', second);
      await scene.cluster.settle();
      expect(scene.ipsOf('a')).to.deep.equal(ips);
      expect(scene.leases).to.deep.equal(ips);
    });
  }

  it('keeps the address when the pool loses spec.guest, and leaves new claims without IPAM alone', async () => {
    createOnLayer2('a');
    await scene.cluster.settle();
    const ips = scene.ipsOf('a');
    expect(ips).to.have.length(1);
    setGuest(undefined);
    createOnLayer2('b');
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(ips);
    expect(scene.heldBy('a')).to.deep.equal(ips);
    expect(scene.claim('b').status).to.equal(undefined);
  });

  it('cools down the address of a deleted claim as on other NADs', async () => {
    createOnLayer2('a');
    await scene.cluster.settle();
    scene.finish('a');
    await scene.cluster.settle();
    const [lease] = scene.cluster.world.list('addressleases');
    expect(lease?.spec.releasedAt).not.to.equal(undefined);
    await scene.cluster.coolDown();
    expect(scene.leases).to.deep.equal([]);
  });
});
