import { expect } from 'chai';
import fc from 'fast-check';
import { CLAIM_REFERENCE_KEY, NETWORKS_ANNOTATION } from '../api/names.js';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { AdmissionClient, type HttpResponse } from '../test/https/admission-client.js';
import { makeServingCertificate } from '../test/https/certificate.js';
import { NAMESPACE, makeLauncherPod, networksValue } from '../test/objects/kubevirt-objects.js';
import { CLUSTER, VM1, clusterViewOf } from '../test/objects/pod-review.js';
import { LauncherAdmission } from './launcher-admission.js';
import { silentWebhookMetrics } from './testing/silent-webhook-metrics.js';
import { reviewPod } from './pod-mutation.js';
import { AdmissionServer } from '../admission/server.js';
import { KNOWN_KUBEVIRT } from '../test/objects/launcher-pods.js';

const LIMIT = 50_000;

/** A review that is allowed and patched, before somebody spoils it. */
function goodReview(): Record<string, unknown> {
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      uid: 'u1',
      operation: 'UPDATE',
      namespace: NAMESPACE,
      resource: { group: '', version: 'v1', resource: 'pods' },
      object: makeLauncherPod(VM1),
      oldObject: makeLauncherPod(VM1, networksValue(VM1, { data: 'vm1.data' })),
    },
  };
}

/** Paths of everything in an object, deepest last. */
function pathsOf(value: unknown, path: string[] = []): string[][] {
  const below = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  return [path, ...below.flatMap(([key, inner]) => pathsOf(inner, [...path, key]))];
}

function put(root: unknown, path: readonly string[], value: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return value;
  if (Array.isArray(root))
    return (root as unknown[]).map((inner, at) => (String(at) === key ? put(inner, rest, value) : inner));
  const record = root as Record<string, unknown>;
  return { ...record, [key]: put(record[key], rest, value) };
}

const RELEVANT = pathsOf(goodReview()).filter((path) => path[0] !== 'request' || path[2] !== 'spec');

describe('malformed input to the webhook', function () {
  this.timeout(30_000); // thousands of requests
  let server: AdmissionServer;
  let client: AdmissionClient;

  before(async () => {
    const podReviewer = {
      review: (pod: Parameters<typeof reviewPod>[0]) => Promise.resolve(reviewPod(pod, clusterViewOf(CLUSTER))),
    };
    const admission = new LauncherAdmission({
      podReviewer,
      kubevirt: KNOWN_KUBEVIRT,
      log: silentLogger,
      metrics: silentWebhookMetrics,
      clock: systemClock,
    });
    server = new AdmissionServer({
      address: { host: '127.0.0.1', port: 0 },
      minVersion: 'TLSv1.3',
      routes: { '/mutate-launcher-pods': (body) => admission.answer(body) },
      log: silentLogger,
      maxBodyBytes: LIMIT,
    });
    await server.listen();
    const certificate = makeServingCertificate();
    server.setCertificate(certificate);
    client = new AdmissionClient(server.port, { ca: certificate.ca });
  });
  after(async () => {
    client.close();
    await server.stop();
  });
  afterEach('a good review is still answered', async () => {
    const { status, body } = await client.send({ body: JSON.stringify(goodReview()) });
    expect(status).to.equal(200);
    expect(body).to.include('"allowed":true,"patchType":"JSONPatch"');
  });

  /** Either an HTTP error in words, or an AdmissionReview for the UID that was asked about. */
  function expectAnswer({ status, headers, body }: HttpResponse, sent: unknown): void {
    if (status !== 200) {
      expect(status).to.be.oneOf([400, 413, 415]);
      expect(headers['content-type']).to.include('text/plain');
      expect(body.trim()).not.to.equal('');
      return;
    }
    const { response } = JSON.parse(body) as {
      response: { uid: string; allowed: boolean; status?: { message: string; code: number } };
    };
    expect(response.uid).to.equal((sent as { request: { uid: string } }).request.uid);
    if (response.allowed) return;
    expect(response.status?.message).to.be.a('string').and.not.to.equal('');
    expect(response.status?.code).to.be.oneOf([400, 403]);
  }

  const run = { numRuns: 150 };

  it('is refused if it is random bytes', async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 2000 }), async (bytes) => {
        const answer = await client.send({ body: Buffer.from(bytes) });
        expectAnswer(answer, undefined);
        expect(answer.status).to.equal(400);
      }),
      run,
    );
  });

  it('is refused or answered if it is random JSON', async () => {
    const envelope = fc.record(
      {
        apiVersion: fc.constant('admission.k8s.io/v1'),
        kind: fc.constant('AdmissionReview'),
        request: fc.oneof(
          fc.jsonValue(),
          fc.record({ uid: fc.string(), object: fc.jsonValue() }, { requiredKeys: [] }),
        ),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(fc.oneof(fc.jsonValue(), envelope), async (value) => {
        expectAnswer(await client.send({ body: JSON.stringify(value) }), value);
      }),
      run,
    );
  });

  it('is refused or answered if it is a review with one wrong value', async () => {
    const wrong = fc.oneof(fc.constantFrom(null, 7, 'x', '', [], {}, true, [[]], [null]), fc.jsonValue());
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...RELEVANT), wrong, async (path, value) => {
        const review = put(goodReview(), path, value);
        expectAnswer(await client.send({ body: JSON.stringify(review) }), review);
      }),
      { numRuns: 300 },
    );
  });

  it('is refused or answered if it is a random networks annotation', async () => {
    const key = fc.constantFrom(
      'name',
      'namespace',
      'interface',
      'ips',
      'mac',
      CLAIM_REFERENCE_KEY,
      '__proto__',
      'constructor',
    );
    const elements = fc.array(fc.oneof(fc.dictionary(key, fc.jsonValue()), fc.jsonValue()), { maxLength: 4 });
    const value = fc.oneof(
      fc.string(),
      elements.map((list) => JSON.stringify(list)),
      fc.json(),
    );
    const path = ['request', 'object', 'metadata', 'annotations', NETWORKS_ANNOTATION];
    await fc.assert(
      fc.asyncProperty(value, async (networks) => {
        const review = put(goodReview(), path, networks);
        expectAnswer(await client.send({ body: JSON.stringify(review) }), review);
      }),
      { numRuns: 300 },
    );
  });

  const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels);
  const oddities: { name: string; body: string; status: number }[] = [
    { name: 'very deep JSON', body: deep(20_000), status: 400 },
    { name: 'a body over the limit', body: ' '.repeat(LIMIT + 1), status: 413 },
    { name: 'a body far over the limit', body: ' '.repeat(LIMIT * 10), status: 413 },
    {
      name: 'a very deep annotation',
      body: JSON.stringify(
        put(goodReview(), ['request', 'object', 'metadata', 'annotations', NETWORKS_ANNOTATION], deep(15_000)),
      ),
      status: 200,
    },
    { name: 'a prototype', body: '{"__proto__":{"kind":"AdmissionReview"}}', status: 400 },
  ];
  for (const { name, body, status } of oddities) {
    it(`gets status ${status} if it is ${name}`, async () => {
      expect((await client.send({ body })).status).to.equal(status);
    });
  }
});
