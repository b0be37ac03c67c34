import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { until } from '../bed/processes/wait.js';
import { TransportError } from '../kube/errors.js';
import {
  MUTATING_WEBHOOK_CONFIGURATIONS,
  SECRETS,
  type Secret,
  VALIDATING_WEBHOOK_CONFIGURATIONS,
} from '../kube/resources.js';
import { describeLoadError, namesIn } from '../tls/pem.js';
import type { ApiRequest } from '../kube/transport/transport.js';
import { CertificateReplicas, SECRET, START, useReplicas } from './testing/certificate-replicas.js';
import { CA_LIFETIME_MS, CA_OVERLAP_MS, SERVING_LIFETIME_MS, CA_PROPAGATION_MS, TRUST_MS } from './certificate-plan.js';

const DAY_MS = 24 * 3_600_000;
const KINDS = [MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS];

describe('the certificates of an admission server', function () {
  let replicas: CertificateReplicas;
  useReplicas(this, (created) => (replicas = created));

  for (const resource of KINDS) {
    it(`are created at the first start, stored in a Secret, and trusted by a ${resource.kind}`, async () => {
      replicas = new CertificateReplicas(resource);
      await replicas.startAndSettle();
      expect(replicas.bundles.map((bundle) => bundle.length)).to.deep.equal([1, 1]);
      expect(replicas.isTrusted(0)).to.be.true;
      expect(replicas.writes()).to.deep.equal(['PUT secrets', `PATCH ${resource.plural}`]);
    });
  }

  it('are trusted by another configuration for the same server when it exists', async () => {
    await replicas.startAndSettle();
    const webhooks = [{ name: 'c', clientConfig: { service: { name: 'holdfast-webhook' } } }];
    replicas.putConfiguration({ metadata: { name: 'another' }, webhooks });
    replicas.stores[0]?.wake();
    await until('it is trusted', () => replicas.bundlesOf('another')[0]?.join() === replicas.bundles[0]?.join());
  });

  it('are stored in the existing Secret with the CA, and keep its type and labels', async () => {
    const [type, labels] = ['kubernetes.io/tls', { app: 'holdfast' }];
    const { metadata } = replicas.secret;
    replicas.api.tracker.put(SECRETS, { ...replicas.secret, type, metadata: { ...metadata, labels } });
    await replicas.startAndSettle();
    expect(replicas.stores[0]?.ready()).to.be.undefined;
    expect(replicas.secret).to.deep.include({ type });
    expect(replicas.secret.metadata.labels).to.deep.equal(labels);
    expect(Object.keys(replicas.secret.data ?? {})).to.have.members(['tls.crt', 'tls.key', 'ca.crt', 'ca.key']);
  });

  it('are not ready after they have expired', async () => {
    await replicas.startAndSettle();
    const end = Date.parse(new X509Certificate(replicas.served[0]?.cert ?? '').validTo);
    replicas.api.before = () => {
      throw new TransportError('unsent', 'connection refused');
    };
    await replicas.advanceTo(end - 1);
    expect(replicas.stores[0]?.ready()).to.be.undefined;
    await replicas.advanceTo(end);
    expect(replicas.stores[0]?.ready()).to.include(`expired at ${new Date(end).toISOString()}`);
  });

  it('are shared by replicas that start together: one Secret, one CA', async () => {
    for (let count = 0; count < 3; count++) replicas.start();
    await replicas.settle();
    const [first, ...others] = replicas.served;
    for (const other of others) expect(other).to.deep.equal(first);
    expect(first).not.to.be.undefined;
    expect(replicas.stores.map((store) => store.ready())).to.deep.equal([undefined, undefined, undefined]);
    expect(replicas.bundles[0]).to.have.length(1);
  });

  it('are read from an existing Secret without a write', async () => {
    await replicas.startAndSettle();
    const before = replicas.api.requests.length;
    await replicas.startAndSettle();
    expect(replicas.served[1]).to.deep.equal(replicas.served[0]);
    expect(replicas.writes(before)).to.deep.equal([]);
  });

  it('are renewed by one of two replicas at two thirds of their lifetime', async () => {
    replicas.start();
    await replicas.startAndSettle();
    const before = replicas.api.requests.length;
    const [old] = replicas.served;
    await replicas.advance((SERVING_LIFETIME_MS * 2) / 3 + 1000);
    expect(replicas.served[0]).not.to.deep.equal(old);
    expect(replicas.served[1]).to.deep.equal(replicas.served[0]);
    expect(replicas.isTrusted(0)).to.be.true;
    const renewals = replicas.api.requests.slice(before).filter(({ method }) => method === 'PUT');
    // the loser may have tried: its PUT changed nothing
    expect(renewals.length).to.be.within(1, 2);
    expect(replicas.bundles[0]).to.have.length(1);
  });

  it('change to a new CA while API servers trust the served certificate at any time', async () => {
    replicas.start();
    await replicas.startAndSettle();
    const [firstCa] = replicas.bundles[0] ?? [];
    const sizes = new Set<number>();
    let before = replicas.bundles[0] ?? [];
    const over = () => sizes.has(2) && before.length === 1;
    while (!over()) {
      // in long steps, and while the CA changes from event to event
      const { clock } = replicas;
      await replicas.advanceTo(sizes.has(2) ? (clock.next ?? 0) : clock.now() + 10 * DAY_MS);
      const bundle = replicas.bundles[0] ?? [];
      sizes.add(bundle.length);
      for (const replica of [0, 1]) {
        expect(replicas.isTrusted(replica, bundle), 'by an API server that is up to date').to.be.true;
        expect(replicas.isTrusted(replica, before), 'by one that is a step behind').to.be.true;
      }
      before = bundle;
    }
    expect(replicas.clock.now() - START).to.be.lessThan(CA_LIFETIME_MS);
    expect([...sizes]).to.have.members([1, 2]);
    expect(replicas.bundles[0]).to.have.length(1).and.not.to.include(firstCa);
  });

  it('are signed by a new CA only when the configuration trusts it', async () => {
    await replicas.startAndSettle();
    const [firstCa] = replicas.bundles[0] ?? [];
    let refuse = true;
    replicas.api.before = (request: ApiRequest) => {
      if (refuse && request.method === 'PATCH') throw new TransportError('unsent', 'connection refused');
    };
    for (let days = 0; days < 250; days += 25) await replicas.advance(25 * DAY_MS);
    expect(replicas.bundles[0]).to.deep.equal([firstCa]);
    expect(replicas.isTrusted(0)).to.be.true;
    refuse = false;
    while (replicas.bundles[0]?.length === 1) await replicas.advanceTo(replicas.clock.next ?? 0);
    // as the watch of the configuration does
    replicas.stores[0]?.wake();
    await replicas.advance(TRUST_MS - 2000);
    expect(replicas.isTrusted(0, [firstCa ?? '']), 'by an API server that is a step behind').to.be.true;
    for (const ms of [TRUST_MS, CA_PROPAGATION_MS, CA_OVERLAP_MS + 60_000]) await replicas.advance(ms);
    expect(replicas.bundles[0]).to.have.length(1).and.not.to.include(firstCa);
    expect(replicas.isTrusted(0)).to.be.true;
  });

  it('are trusted again after the caBundle was emptied', async () => {
    await replicas.startAndSettle();
    const configuration = structuredClone(replicas.configuration);
    for (const { clientConfig } of configuration.webhooks ?? []) delete clientConfig.caBundle;
    replicas.putConfiguration(configuration);
    replicas.stores[0]?.wake();
    await replicas.settle();
    expect(replicas.bundles.map((bundle) => bundle.length)).to.deep.equal([1, 1]);
  });

  const damages: Record<string, (data: Secret['data']) => NonNullable<Secret['data']>> = {
    emptied: () => ({}),
    corrupted: (data) => ({ ...data, 'ca.key': Buffer.from('x').toString('base64') }),
  };
  for (const [damage, change] of Object.entries(damages)) {
    it(`are replaced after the Secret was ${damage}, while API servers trust each replica at any time`, async () => {
      replicas.start();
      await replicas.startAndSettle();
      const [shown] = replicas.served;
      let before = replicas.bundles[0] ?? [];
      const [firstCa] = before;
      const { secret } = replicas;
      replicas.api.tracker.put(SECRETS, { ...secret, data: change(secret.data) });
      // the watch of the other replica lags
      replicas.stores[0]?.wake();
      for (const ms of [0, 60_000, CA_PROPAGATION_MS, CA_OVERLAP_MS, 60_000]) {
        await replicas.advance(ms);
        for (const replica of [0, 1]) {
          expect(replicas.isTrusted(replica), 'by an API server that is up to date').to.be.true;
          expect(replicas.isTrusted(replica, before), 'by one that is a step behind').to.be.true;
        }
        before = replicas.bundles[0] ?? [];
        for (const store of replicas.stores) store.wake();
      }
      expect(replicas.bundles[0]).to.have.length(1).and.not.to.include(firstCa);
      expect(replicas.served[0]).not.to.deep.equal(shown);
      expect(replicas.served[1]).to.deep.equal(replicas.served[0]);
    });
  }

  it('cover the names of all replicas while an update changes --webhook-url, and those of the new one after a renewal', async () => {
    for (const host of ['old.example.com', 'new.example.com']) replicas.start({ hosts: [host] });
    await replicas.settle();
    const before = replicas.api.requests.length;
    for (let round = 0; round < 5; round++) {
      for (const store of replicas.stores) store.wake();
      await replicas.advance(1000);
    }
    expect(replicas.writes(before)).to.deep.equal([]);
    const service = 'holdfast-webhook.holdfast-system.svc';
    for (const served of replicas.served)
      expect(namesIn(served!.cert)).to.have.members([service, 'old.example.com', 'new.example.com']);
    await replicas.stores.shift()?.stop();
    await replicas.advance((SERVING_LIFETIME_MS * 2) / 3);
    expect(namesIn(replicas.served[1]!.cert)).to.have.members([service, 'new.example.com']);
  });

  it('are renewed before a replica is ready, if a TLS server cannot load the text after the certificate', async () => {
    await replicas.startAndSettle();
    const { data = {} } = replicas.secret;
    const cert = replicas.served[0]?.cert ?? '';
    const cut = Buffer.from(`${cert}${cert.slice(0, 300)}\n-----END CERTIFICATE-----\n`).toString('base64');
    replicas.api.tracker.put(SECRETS, { ...replicas.secret, data: { ...data, 'tls.crt': cut } });
    await replicas.startAndSettle();
    expect(replicas.stores[1]?.ready()).to.be.undefined;
    expect(describeLoadError(replicas.served[1]!)).to.be.undefined;
    expect(replicas.isTrusted(1)).to.be.true;
  });

  it('need an existing Secret: without it, the replica is not ready and reports what to do', async () => {
    const shipped = replicas.secret;
    replicas.api.tracker.remove(SECRETS, SECRET);
    replicas.start();
    await replicas.clock.untilAlarmsSet(1);
    const problem = 'Secret holdfast-system/holdfast-webhook-tls does not exist: apply the manifests';
    expect(replicas.stores[0]?.ready()).to.equal(problem);
    expect(replicas.writes()).to.deep.equal([]);
    replicas.api.tracker.put(SECRETS, shipped);
    await replicas.settle();
    expect(replicas.isTrusted(0)).to.be.true;
  });

  it('are trusted again at most every ten seconds while another program, such as the cainjector of cert-manager, keeps changing the caBundle', async () => {
    const { configuration: foreign } = replicas;
    await replicas.startAndSettle();
    const from = replicas.api.requests.length;
    for (let overwritten = 0; overwritten < 100; overwritten++) {
      if (replicas.bundles[0]?.length === 1) replicas.putConfiguration(foreign);
      replicas.stores[0]?.wake();
      await replicas.advance(100);
    }
    expect(replicas.writes(from)).to.have.lengthOf.within(4, 6);
    await replicas.advance(30_000);
    expect(replicas.isTrusted(0)).to.be.true;
  });

  it('stay in use and ready after the Secret was deleted, and are replaced later when it exists', async () => {
    await replicas.startAndSettle();
    const [shown] = replicas.served;
    const { metadata } = replicas.secret;
    replicas.api.tracker.remove(SECRETS, SECRET);
    replicas.stores[0]?.wake();
    await replicas.clock.untilAlarmsSet(1);
    expect(replicas.stores[0]?.ready()).to.be.undefined;
    expect(replicas.served[0]).to.equal(shown);
    replicas.api.tracker.put(SECRETS, { metadata });
    await replicas.advance(60_000);
    expect(replicas.served[0]).to.equal(shown);
    for (const ms of [CA_PROPAGATION_MS, TRUST_MS]) await replicas.advance(ms);
    expect(replicas.served[0]).not.to.deep.equal(shown);
    expect(replicas.isTrusted(0)).to.be.true;
  });

  it('stay in use and ready while the API server is unavailable', async () => {
    await replicas.startAndSettle();
    const [shown] = replicas.served;
    replicas.api.before = () => {
      throw new TransportError('unsent', 'connection refused');
    };
    for (let tries = 0; tries < 5; tries++) await replicas.advanceTo(replicas.clock.next ?? 0);
    expect(replicas.stores[0]?.ready()).to.be.undefined;
    expect(replicas.served[0]).to.equal(shown);
  });

  it('are not ready, and report why, until there is a configuration', async () => {
    const { configuration } = replicas;
    replicas.removeConfiguration();
    replicas.start();
    await replicas.clock.untilAlarmsSet();
    expect(replicas.stores[0]?.ready()).to.include('MutatingWebhookConfiguration holdfast-webhook does not exist');
    replicas.putConfiguration(configuration);
    await replicas.advanceTo(replicas.clock.next ?? 0);
    await replicas.settle();
    expect(replicas.stores[0]?.ready()).to.be.undefined;
  });
});
