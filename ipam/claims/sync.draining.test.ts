import { expect } from 'chai';
import { parseAddress } from '../../addressing/address/address.js';
import { ADDRESS_DRAINING } from '../../api/names.js';
import { ClaimSyncScenario, type Name } from './testing/model/claim-sync-scenario.js';

describe('syncing a claim whose address is in a draining range', () => {
  let scene: ClaimSyncScenario;
  const drain = (pool: 'draining' | 'renumbered' = 'draining') => scene.cluster.operate({ do: 'pool', pool });
  const drainingOf = (name: Name) =>
    scene.claim(name).status?.conditions?.find(({ type }) => type === ADDRESS_DRAINING);
  const occupy = (name: Name, address: string) => scene.create(name, { request: `["${address}"]` });

  beforeEach(async () => {
    scene = new ClaimSyncScenario();
    scene.create('a', { owned: true });
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
  });

  it('allocates another one, shows it, and then releases the old one', async () => {
    drain();
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
    expect(scene.heldBy('a')).to.deep.equal(['10.0.0.4']);
    expect(drainingOf('a')).to.equal(undefined);
  });

  for (const last of [0, 1, 2, 3, 4, 5]) {
    it(`ends with one address if the process stops at request ${last}`, async () => {
      drain();
      scene.failRequest(last, { error: new Error('killed'), applied: last % 2 === 0 });
      await scene.sync('a').catch(() => undefined);
      scene.cluster.api.before = () => undefined;
      scene.cluster.restart(0);
      await scene.cluster.settle();
      expect(scene.ipsOf('a')).to.deep.equal(scene.heldBy('a'));
      expect(scene.ipsOf('a')?.[0]).to.be.oneOf(['10.0.0.4', '10.0.0.5']);
    });
  }

  it('moves to another subnet of the pool', async () => {
    drain('renumbered');
    await scene.cluster.settle();
    expect(scene.ipsOf('a')?.[0]).to.match(/^10\.0\.1\./);
  });

  it('keeps it while a pod uses the claim, and moves when that pod is gone', async () => {
    scene.cluster.operate({ do: 'startPod', name: 'a' });
    scene.cluster.operate({ do: 'addPod', name: 'a' });
    drain();
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(drainingOf('a')).to.deep.include({
      status: 'True',
      reason: 'ClaimInUse',
      message: '10.0.0.2 is in a draining range of pool blue, and pod a uses it: restart the VM to change its address',
    });
    expect(scene.process.events).to.include(
      `Normal IPAMClaim AddressDraining: ClaimInUse: ${drainingOf('a')?.message}`,
    );
    scene.cluster.operate({ do: 'endPod', name: 'a' });
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  it('keeps it while the VM requests it', async () => {
    scene.request('a', '["10.0.0.2"]');
    drain();
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(drainingOf('a')).to.include({ reason: 'AddressRequested' });
    scene.request('a', undefined);
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  it('keeps it if nothing else is free, says so, and moves when an address is free', async () => {
    occupy('b', '10.0.0.4');
    occupy('c', '10.0.0.5');
    drain();
    await scene.cluster.settle();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
    expect(drainingOf('a')).to.include({ reason: 'NoOtherAddress' });
    scene.finish('b');
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.4']);
  });

  for (const full of [4, 6] as const) {
    it(`moves to another address of one family if the pool has none of IPv${full}, and moves to that when one is free`, async () => {
      scene.finish('a');
      scene.cluster.operate({ do: 'pool', pool: 'wideDual' });
      scene.create('b', { owned: true });
      await scene.cluster.settle();
      const [ipv4 = '', ipv6 = ''] = scene.ipsOf('b') ?? [];
      const drainFrom = (rest: { ipv4: string; ipv6: string }) =>
        scene.cluster.world.update('addresspools', 'blue', ({ spec }) => {
          spec.subnets = [
            { cidr: '10.0.0.0/28', gateway: '10.0.0.1', draining: [full === 4 ? rest.ipv4 : ipv4] },
            { cidr: '2001:db8::/126', draining: [full === 6 ? rest.ipv6 : ipv6] },
          ];
        });
      drainFrom({ ipv4: '10.0.0.0/28', ipv6: '2001:db8::/126' });
      await scene.cluster.settle();
      const [kept, left] = full === 4 ? [ipv4, ipv6] : [ipv6, ipv4];
      expect(scene.ipsOf('b')).to.have.length(2).and.include(kept).and.not.include(left);
      expect(scene.heldBy('b')).to.have.members(scene.ipsOf('b') ?? []);
      expect(scene.process.waitList.claimsToWake('blue', parseAddress(kept))).to.include('vms/b');
      expect(drainingOf('b')?.reason).to.equal('NoOtherAddress');
      expect(drainingOf('b')?.message).to.match(
        new RegExp(`^${kept} is in .* blue\\. It has no other IPv${full} address`),
      );
      drainFrom({ ipv4, ipv6 });
      await scene.cluster.settle();
      expect(scene.ipsOf('b')).to.have.length(2).and.not.include(kept);
      expect(drainingOf('b')).to.equal(undefined);
    });
  }

  it('leaves the last free addresses to claims that have none, even if they are younger', async () => {
    occupy('b', '10.0.0.4');
    occupy('c', '10.0.0.5');
    drain();
    await scene.cluster.settle();
    scene.create('d');
    await scene.cluster.settle();
    expect(scene.reasonOf('d')).to.equal('SubnetExhausted');
    scene.finish('b');
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect(scene.ipsOf('d')).to.deep.equal(['10.0.0.4']);
    expect(scene.ipsOf('a')).to.deep.equal(['10.0.0.2']);
  });

  it('waits behind all claims without an address, and moves when they have theirs', async () => {
    occupy('b', '10.0.0.4');
    occupy('c', '10.0.0.5');
    drain();
    await scene.cluster.settle();
    scene.create('d');
    await scene.cluster.settle();
    expect(scene.process.waitList.size).to.equal(1);
    scene.finish('b');
    scene.finish('c');
    await scene.cluster.settle();
    await scene.cluster.coolDown();
    expect([scene.ipsOf('d'), scene.ipsOf('a')].flat()).to.have.members(['10.0.0.4', '10.0.0.5']);
    expect(drainingOf('a')).to.equal(undefined);
  });

  it('gets it again if its lease is lost while a pod uses it', async () => {
    scene.cluster.operate({ do: 'startPod', name: 'a' });
    drain();
    await scene.cluster.settle();
    scene.cluster.world.remove('addressleases', 'blue.10-0-0-2');
    await scene.cluster.settle();
    expect(scene.heldBy('a')).to.deep.equal(['10.0.0.2']);
  });

  it('gives it to no other claim, also not on request', async () => {
    drain();
    occupy('b', '10.0.0.3');
    await scene.cluster.settle();
    expect(scene.claim('b').status?.conditions?.[0]).to.include({
      reason: 'AddressOutOfRange',
      message: '10.0.0.3 is in a draining range of pool blue: request one of 10.0.0.4-10.0.0.6',
    });
  });
});
