import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { TransportError } from '../kube/errors.js';
import { SECRETS } from '../kube/resources.js';
import { BACKDATE_MS, SERVING_LIFETIME_MS } from './certificate-plan.js';
import { applyCertificateStep } from './certificate-step.js';
import { writeMaterial } from './certificate-store.js';
import { type CertificateReplicas, useReplicas } from './testing/certificate-replicas.js';

const DAY_MS = 24 * 3_600_000;

describe('certificates that a replica created while its clock differed', function () {
  let replicas: CertificateReplicas;
  useReplicas(this, (created) => (replicas = created));

  function validFrom(replica: number): number {
    return Date.parse(new X509Certificate(replicas.served[replica]?.cert ?? '').validFrom);
  }

  function puts(): number {
    return replicas.writes().filter((write) => write === 'PUT secrets').length;
  }

  it('are valid when the clock is right, and stay', async () => {
    await replicas.startAndSettle();
    const [made] = replicas.served;
    replicas.clock.setBack(300 * DAY_MS);
    replicas.start();
    await replicas.advance(DAY_MS / 2);
    expect(replicas.served).to.deep.equal([made, made]);
    expect(validFrom(0)).to.be.below(replicas.clock.wall());
    expect(replicas.stores.map((store) => store.ready())).to.deep.equal([undefined, undefined]);
  });

  for (const restarts of [false, true]) {
    it(`are replaced if they are not valid yet${restarts ? ' when a replica starts' : ''}, and no replica is ready before`, async () => {
      await replicas.startAndSettle();
      replicas.clock.setBack(BACKDATE_MS + DAY_MS);
      replicas.api.before = () => {
        throw new TransportError('unsent', 'connection refused');
      };
      await replicas.advance(DAY_MS / 2);
      const begin = new Date(validFrom(0)).toISOString();
      expect(replicas.stores[0]?.ready()).to.include(`the certificate is not valid before ${begin}`);
      replicas.api.before = () => undefined;
      if (restarts) replicas.start();
      await replicas.settle();
      await replicas.advance(60_000);
      for (const [replica, store] of replicas.stores.entries()) {
        expect(validFrom(replica)).to.be.below(replicas.clock.wall());
        expect(store.ready()).to.be.undefined;
        expect(replicas.isTrusted(replica)).to.be.true;
      }
    });
  }

  it('are replaced within ten minutes if they have expired, because the machine was suspended or its clock was behind', async () => {
    await replicas.startAndSettle();
    replicas.clock.setBack(-SERVING_LIFETIME_MS);
    expect(replicas.stores[0]?.ready()).to.include('the certificate expired at');
    await replicas.advance(600_000);
    expect(replicas.stores[0]?.ready()).to.be.undefined;
    expect(replicas.isTrusted(0)).to.be.true;
  });

  for (const days of [1, 59, 61, 100, 250, 364]) {
    it(`are not replaced in turn by replicas whose clocks differ by ${days} days`, async () => {
      // as a version created them that dated certificates back by minutes
      const now = replicas.clock.wall() + days * DAY_MS + BACKDATE_MS;
      const early = await applyCertificateStep('make-all', undefined, { now, names: ['x'] });
      replicas.api.tracker.put(SECRETS, writeMaterial(replicas.secret, early));
      replicas.start({ aheadMs: days * DAY_MS });
      await replicas.startAndSettle();
      for (let round = 0; round < 20; round++) {
        for (const store of replicas.stores) store.wake();
        await replicas.advance(60_000);
      }
      const before = puts();
      expect(before, 'writes of the first 20 minutes').to.be.at.most(6);
      expect(validFrom(0)).to.be.below(replicas.clock.wall());
      expect(replicas.stores[1]?.ready()).to.be.undefined;
      for (let round = 0; round < 20; round++) {
        for (const store of replicas.stores) store.wake();
        await replicas.advance(3_600_000);
      }
      expect(puts() - before, 'writes of the next 20 hours').to.be.at.most(4);
    });
  }
});
