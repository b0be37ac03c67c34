import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Client } from '../../kube/client.js';
import { silentLogger } from '../../kube/log.js';
import type { AdmissionComponent } from '../../admission/component.js';
import type { InformerRegistry } from '../../kube/informers/informers.js';
import { createMetrics } from '../../process/metrics.js';
import { AdmissionClient } from '../../test/https/admission-client.js';
import { type ServingCertificate, makeServingCertificate } from '../../test/https/certificate.js';
import { ManualClock } from '../../test/manual-clock.js';
import { MemoryTransport } from '../../kube/testing/memory-transport.js';
import { adminPool, holdfastConfig } from '../../test/objects/pool-objects.js';
import { poolLeaseOf, validationViewOf } from './testing/validation-view.js';
import { type ValidationDeps, createValidationWebhook } from './webhook.js';

interface Response {
  uid: string;
  allowed: boolean;
  warnings?: string[];
  status?: { code: number; message: string };
}

const POOLS = {
  path: '/validate-address-pools',
  resource: { group: 'ipam.holdfast.dev', version: 'v1alpha1', resource: 'addresspools' },
};
const NADS = {
  path: '/validate-network-attachment-definitions',
  resource: { group: 'k8s.cni.cncf.io', version: 'v1', resource: 'network-attachment-definitions' },
};

describe('the validation webhook of pools and NADs over HTTPS', function () {
  this.timeout(30_000); // an RSA key
  let certificate: ServingCertificate;
  let directory: string;
  let clock: ManualClock;
  /** Kinds whose informers have not synced yet. */
  let missing: string[];
  let fill: () => void;
  let metrics: ReturnType<typeof createMetrics>;
  let part: AdmissionComponent;
  let client: AdmissionClient;

  before(async () => {
    certificate = makeServingCertificate();
    directory = await mkdtemp(join(tmpdir(), 'holdfast-validation-'));
    await writeFile(join(directory, 'tls.crt'), certificate.cert);
    await writeFile(join(directory, 'tls.key'), certificate.key);
  });
  after(() => rm(directory, { recursive: true }));
  afterEach(async () => {
    client.close();
    await part.stop();
    metrics.registry.clear();
  });

  async function start(deps: ValidationDeps, unlisted: string[] = []): Promise<void> {
    clock = new ManualClock(Date.UTC(2030, 0, 1));
    metrics = createMetrics('ipam', '0');
    missing = unlisted;
    const listed = new Promise<void>((resolve) => {
      fill = () => {
        missing = [];
        resolve();
      };
    });
    const informers = {
      start: () => undefined,
      synced: () => listed,
      ready: () => (missing.length === 0 ? undefined : `not listed yet: ${missing.join(', ')}`),
    } as unknown as InformerRegistry;
    const base = {
      client: new Client(new MemoryTransport()),
      informers,
      log: silentLogger,
      metrics,
      clock,
      random: () => 0,
    };
    const config = {
      namespace: 'holdfast-system',
      maxStalenessMs: 30_000,
      tlsMinVersion: 'TLSv1.3',
      clientAllowedNames: [],
      validationBindAddress: '127.0.0.1:0',
      validationCertDir: directory,
      validationConfiguration: 'holdfast-ipam',
      validationServiceName: 'holdfast-ipam',
    } as const;
    part = createValidationWebhook(base, config, deps);
    await part.start();
    client = new AdmissionClient(part.port, { ca: certificate.ca });
    // the certificate waits once it is loaded
    await clock.untilAlarmsSet();
  }

  async function ask({ path, resource }: typeof POOLS, request: Record<string, unknown>): Promise<Response> {
    const review = {
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: { uid: 'u1', operation: 'CREATE', resource, oldObject: null, ...request },
    };
    const { status, body } = await client.send({ path, body: JSON.stringify(review) });
    expect(status, body).to.equal(200);
    return (JSON.parse(body) as { response: Response }).response;
  }

  const network = (config: unknown) => ({
    namespace: 'vms',
    object: {
      metadata: { name: 'n', namespace: 'vms' },
      spec: { config: typeof config === 'string' ? config : JSON.stringify(config) },
    },
  });

  it('refuses an invalid pool with a reason, a code and a count in the metrics', async () => {
    await start(validationViewOf({ leases: { p: [poolLeaseOf('10.0.0.5')] } }));
    const answer = await ask(POOLS, { operation: 'DELETE', object: null, oldObject: adminPool('p') });
    expect(answer).to.deep.include({ uid: 'u1', allowed: false });
    expect(answer.status?.code).to.equal(403);
    expect(answer.status?.message).to.match(/^AddressPool p: it has 1 leased address: 10\.0\.0\.5/);
    expect(await metrics.registry.metrics()).to.include('holdfast_ipam_denials_total{check="in-use"} 1');
  });

  it('reports all problems of a pool at once', async () => {
    await start(validationViewOf({}));
    const subnets = [{ cidr: '10.0.0.1/24' }, { cidr: '10.1.0.0/24', gateway: '10.0.0.1' }];
    const { status } = await ask(POOLS, { object: adminPool('p', { subnets }) });
    expect(status?.code).to.equal(400);
    expect(status?.message).to.include('spec.subnets[0].cidr').and.to.include('; spec.subnets[1].gateway');
  });

  it('compares a pool with its old version on UPDATE', async () => {
    await start(validationViewOf({ leases: { p: [poolLeaseOf('10.0.0.200')] } }));
    const [object, oldObject] = [adminPool('p', { cidr: '10.0.0.0/28' }), adminPool('p')];
    expect((await ask(POOLS, { operation: 'UPDATE', object, oldObject })).allowed).to.be.false;
    expect((await ask(POOLS, { operation: 'UPDATE', object, oldObject: object })).allowed).to.be.true;
  });

  it('allows a pool with warnings, and answers a dry run like any other request', async () => {
    await start(validationViewOf({}));
    const object = adminPool('p', { cooldownSeconds: 5 });
    const answer = await ask(POOLS, { object });
    expect(answer.allowed).to.be.true;
    expect(answer.warnings).to.have.length(1);
    expect(await ask(POOLS, { object, dryRun: true })).to.deep.equal(answer);
  });

  it('reviews NADs', async () => {
    await start(validationViewOf({}));
    const answer = await ask(NADS, network(holdfastConfig({ subnets: [{ cidr: '10.0.0.1/24' }] })));
    expect(answer.status?.code).to.equal(400);
    expect(answer.status?.message).to.match(
      /^NetworkAttachmentDefinition vms\/n: spec\.config\.ipam\.subnets\[0\]\.cidr /,
    );
  });

  it('refuses a NAD whose routes agents refuse, and names a key that has no effect', async () => {
    await start(validationViewOf({}));
    const answer = await ask(NADS, network(holdfastConfig({ routes: [{ dst: '10.0.0.1/24' }] })));
    expect(answer.allowed).to.be.false;
    expect(answer.status?.message).to.include('spec.config.ipam.routes[0].dst: "10.0.0.1/24" has host bits set');
    const { allowed, warnings } = await ask(NADS, network(holdfastConfig({ dns: { nameserver: [] } })));
    expect(allowed).to.be.true;
    expect(warnings?.join()).to.include('spec.config.ipam.dns.nameserver has no effect');
  });

  it('refuses a NAD whose network has a name that agents refuse, also without subnets', async () => {
    await start(validationViewOf({}));
    for (const ipam of [{}, { subnets: [{ cidr: '10.0.0.0/24' }] }]) {
      const { allowed, status } = await ask(NADS, network(holdfastConfig(ipam, 'blue ')));
      expect(allowed).to.be.false;
      expect(status?.message).to.match(
        /spec\.config\.name .*"blue ",? .*is not a valid name of a CNI network: use letters/,
      );
    }
  });

  it('refuses a NAD that names as many namespaces as a pool may have, beside its own', async () => {
    await start(validationViewOf({}));
    const namespaces = Array.from({ length: 256 }, (_, index) => `team-${index}`);
    const ipam = (named: readonly string[]) =>
      holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }], namespaces: named });
    const answer = await ask(NADS, network(ipam(namespaces)));
    expect(answer.allowed).to.be.false;
    expect(answer.status?.message).to.include('spec.config.ipam.namespaces names 256 namespaces besides "vms"');
    expect((await ask(NADS, network(ipam(namespaces.slice(1))))).allowed).to.be.true;
  });

  it('warns of an unreadable NAD, and of a misspelled flag', async () => {
    await start(validationViewOf({}));
    const broken = await ask(NADS, network('{"ipam": {"type": "holdfast"'));
    expect(broken.allowed).to.be.true;
    expect(broken.warnings?.join()).to.match(/^spec\.config is not JSON/);
    const misspelt = await ask(NADS, network({ ...holdfastConfig(), allowPersistentIps: true }));
    expect(misspelt.allowed).to.be.true;
    expect(misspelt.warnings?.join()).to.match(/^spec\.config\.allowPersistentIps .*write allowPersistentIPs/);
  });

  it('answers NADs of other IPAMs without warnings', async () => {
    await start(validationViewOf({}));
    const ipam = { type: 'host-local', note: 'not "holdfast"' };
    for (const config of [{ ...holdfastConfig(), ipam, allowPersistentIps: true }, '{"ipam": {"type": "static"']) {
      expect(await ask(NADS, network(config))).to.deep.equal({ uid: 'u1', allowed: true });
    }
  });

  const malformed = [
    { name: 'no pool', given: { object: null }, text: 'request.object is null, not an object' },
    { name: 'a pool without metadata', given: { object: {} }, text: 'request.object.metadata is absent' },
    { name: 'no pool spec', given: { object: { metadata: { name: 'p' } } }, text: 'request.object.spec is absent' },
    {
      name: 'an old pool that is not an object',
      given: { operation: 'UPDATE', object: adminPool('p') },
      text: 'request.oldObject is null',
    },
    {
      name: 'an object of another kind',
      given: { resource: NADS.resource, object: {} },
      text: 'k8s.cni.cncf.io/v1/network-attachment-definitions is sent to a webhook for',
    },
  ];
  for (const { name, given, text } of malformed) {
    it(`refuses ${name}, naming the field`, async () => {
      await start(validationViewOf({}));
      const { allowed, status } = await ask(POOLS, given);
      expect(allowed).to.be.false;
      expect(status?.code).to.equal(400);
      expect(status?.message).to.include(text);
    });
  }

  it('refuses a pool if the review itself fails, but allows a NAD unchecked', async () => {
    const broken = {
      ...validationViewOf({}),
      pools: {
        list: () => {
          throw new TypeError('oops');
        },
        get: () => undefined,
        byIndex: () => [],
      },
    };
    await start(broken);
    expect((await ask(POOLS, { object: adminPool('p') })).status).to.include({ code: 500 });
    const { allowed, warnings } = await ask(NADS, network(holdfastConfig({ subnets: [{ cidr: '10.0.0.0/24' }] })));
    expect(allowed).to.be.true;
    expect(warnings?.join()).to.include('not checked').and.to.include('oops');
    expect((await ask(NADS, { namespace: 'vms', object: null })).allowed).to.be.true;
  });

  it('waits until the caches have synced', async () => {
    await start(validationViewOf({}), ['addressleases']);
    expect(part.ready()).to.equal('not listed yet: addressleases');
    const answer = ask(POOLS, { object: adminPool('p') });
    await clock.untilAlarmsSet(2);
    fill();
    expect((await answer).allowed).to.be.true;
    expect(part.ready()).to.be.undefined;
  });

  it('does not wait longer than API servers do', async () => {
    await start(validationViewOf({}), ['addressleases']);
    const pool = ask(POOLS, { object: adminPool('p') });
    await clock.untilAlarmsSet(2);
    clock.advanceTo(clock.now() + 4_000);
    const { allowed, status } = await pool;
    expect(allowed).to.be.false;
    expect(status?.message).to.include('not listed yet: addressleases').and.to.include('Try again');
    const asking = ask(NADS, network(holdfastConfig()));
    await clock.untilAlarmsSet(2);
    clock.advanceTo(clock.now() + 4_000);
    expect(await asking).to.deep.include({ allowed: true });
  });

  it('allows NADs of other IPAMs at once, even before the caches have synced', async () => {
    await start(validationViewOf({}), ['addressleases']);
    const other = { name: 'blue', type: 'bridge', ipam: { type: 'host-local' }, note: 'not "holdfast"' };
    expect(await ask(NADS, network(other))).to.deep.equal({ uid: 'u1', allowed: true });
  });
});
