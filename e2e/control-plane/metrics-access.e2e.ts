import { createSign } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { request } from 'node:https';
import { join } from 'node:path';
import { expect } from 'chai';
import type { KubeObject } from '../../api/meta.js';
import { Client } from '../../kube/client.js';
import { systemClock } from '../../kube/clock.js';
import { loadCredentials } from '../../kube/transport/credentials.js';
import { silentLogger } from '../../kube/log.js';
import { NAMESPACES, SUBJECT_ACCESS_REVIEWS } from '../../kube/resources.js';
import { Transport } from '../../kube/transport/transport.js';
import { EMPTY_SERVER } from '../../manifests/testing/shared-server.js';
import { type SecureMetrics, serveSecureMetrics } from '../../monitoring/serve-metrics.js';
import { createMetrics } from '../../process/metrics.js';
import type { ControlPlane } from '../../bed/control-plane/control-plane.js';
import { createAll, readManifests } from '../../bed/control-plane/objects.js';
import {
  clusterRoleBindingOf,
  SERVICE_ACCOUNTS,
  requestToken,
  writeServiceAccountKubeconfig,
} from '../../bed/control-plane/service-accounts.js';
import { until } from '../../bed/processes/wait.js';
import { MANIFESTS } from '../../bed/holdfast/manifests.js';

const NAMESPACE = 'holdfast-system';
const AUDIENCE = 'holdfast-metrics';

/** The shipped role of a process, real tokens, and a real API server that reviews them. */
describe('Access to metrics on a real API server', function () {
  let plane: ControlPlane;
  let client: Client;
  let served: SecureMetrics;
  let forAudience: SecureMetrics;
  let reader: string;

  EMPTY_SERVER.use(this, async (started) => {
    plane = started;
    await plane.client.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    for (const file of ['controller.yaml', 'people.yaml'])
      await createAll(plane.client, await readManifests(join(MANIFESTS, 'base', 'claims', 'rbac', file)));
    for (const name of ['reader', 'stranger'])
      await plane.client.create(SERVICE_ACCOUNTS, { metadata: { namespace: NAMESPACE, name } });
    await createAll(plane.client, [
      clusterRoleBindingOf({ namespace: NAMESPACE, name: 'reader' }, 'holdfast-metrics-reader'),
    ]);
    const account = { namespace: NAMESPACE, name: 'holdfast-controller' };
    const kubeconfig = await writeServiceAccountKubeconfig(plane, account);
    client = new Client(new Transport(await loadCredentials({ kubeconfig })));
    reader = await requestToken(plane.client, { namespace: NAMESPACE, name: 'reader' });
    served = await serve([]);
    forAudience = await serve([AUDIENCE]);
    // the API server needs a moment to see new roles, and refusals are cached for 30 s
    await until('the API server to know the roles', () => mayReview());
  });

  after(async () => {
    await Promise.all([served.close(), forAudience.close()]);
    await client.transport.close();
  });

  async function serve(metricsAudiences: readonly string[]): Promise<SecureMetrics> {
    const context = { client, clock: systemClock, log: silentLogger, metrics: createMetrics('controller', '1') };
    const config = { metricsBindAddress: '127.0.0.1:0', metricsSecure: true, tlsMinVersion: 'TLSv1.3' } as const;
    const made = await serveSecureMetrics(context, { ...config, metricsAudiences });
    await until('a certificate', () => Promise.resolve(made.check.notice?.() === undefined));
    return made;
  }

  async function mayReview(): Promise<boolean> {
    const spec = {
      user: `system:serviceaccount:${NAMESPACE}:reader`,
      nonResourceAttributes: { path: '/metrics', verb: 'get' },
    };
    const metadata = {} as KubeObject['metadata'];
    const review = await client.create(SUBJECT_ACCESS_REVIEWS, { metadata, spec }).catch(() => undefined);
    return review?.status?.allowed === true;
  }

  function scrape(token: string | undefined, { port } = served): Promise<{ status: number; body: string }> {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const options = { host: '127.0.0.1', port, path: '/metrics', headers, agent: false, rejectUnauthorized: false };
    return new Promise((resolve, reject) => {
      const sent = request(options, (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (text: string) => (body += text));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, body }));
      });
      sent.on('error', reject).end();
    });
  }

  /** The token of the reader with other claims, signed with the key of the API server. */
  async function resigned(claims: object): Promise<string> {
    const [header = '', payload = ''] = reader.split('.');
    const encoded = JSON.parse(Buffer.from(payload, 'base64url').toString()) as object;
    const changed = `${header}.${Buffer.from(JSON.stringify({ ...encoded, ...claims })).toString('base64url')}`;
    const key = await readFile(plane.certificates.serviceAccountKey, 'utf8');
    return `${changed}.${createSign('RSA-SHA256').update(changed).sign(key).toString('base64url')}`;
  }

  it('is granted to a service account with the shipped role', async () => {
    const { status, body } = await scrape(reader);
    expect(status, body).to.equal(200);
    expect(body).to.include('holdfast_build_info');
    expect((await scrape(await resigned({}))).status).to.equal(200);
  });

  it('is refused with 403 to a service account without it', async () => {
    const { status, body } = await scrape(await requestToken(plane.client, { namespace: NAMESPACE, name: 'stranger' }));
    expect(status).to.equal(403);
    expect(body).to.equal(
      `user "system:serviceaccount:${NAMESPACE}:stranger" may not get /metrics: bind it to the ClusterRole holdfast-metrics-reader\n`,
    );
  });

  it('is refused with 401 to no token, garbage, a changed token, an expired token and one for another audience', async () => {
    const second = Math.floor(Date.now() / 1_000);
    const refused = {
      none: undefined,
      garbage: 'garbage',
      changed: `${reader.slice(0, -4)}AAAA`,
      expired: await resigned({ iat: second - 7_200, nbf: second - 7_200, exp: second - 3_600 }),
      other: await resigned({ aud: ['vault'] }),
    };
    for (const [name, token] of Object.entries(refused)) {
      const { status, body } = await scrape(token);
      expect([status, body.includes('holdfast_build')], name).to.deep.equal([401, false]);
    }
  });

  it('needs a token for the audience if there is one', async () => {
    expect((await scrape(reader, forAudience)).status).to.equal(401);
    expect((await scrape(await resigned({ aud: [AUDIENCE] }), forAudience)).status).to.equal(200);
  });

  it('is refused with 503 for new tokens while the API server is away', async () => {
    const fresh = (jti: string) => resigned({ aud: [AUDIENCE], jti });
    await plane.apiServer.kill();
    try {
      expect((await scrape(await fresh('first'), forAudience)).status).to.equal(503);
      expect((await scrape('garbage', forAudience)).status).to.equal(503);
      // the cached answer
      expect((await scrape(reader)).status).to.equal(200);
    } finally {
      await plane.apiServer.start();
    }
    await until(
      'the API server to answer',
      async () => (await scrape(await fresh('first'), forAudience)).status === 200,
    );
  });
});
