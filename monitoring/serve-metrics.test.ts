import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TLSSocket, connect } from 'node:tls';
import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { createMetrics, type Metrics } from '../process/metrics.js';
import { type ServingCertificate, makeServingCertificate } from '../test/https/certificate.js';
import { type SecureMetrics, serveSecureMetrics } from './serve-metrics.js';
import { ReviewApi } from './testing/review-api.js';

describe('secure metrics', function () {
  this.timeout(30_000); // RSA keys
  let api: ReviewApi;
  let metrics: Metrics;
  let served: SecureMetrics;
  let directory: string | undefined;
  let sockets: TLSSocket[];

  beforeEach(() => {
    api = new ReviewApi();
    api.add('good', 'prometheus');
    api.readers.add('prometheus');
    api.add('other', 'tenant');
    metrics = createMetrics('webhook', '1.2.3');
    directory = undefined;
    sockets = [];
  });
  afterEach(async () => {
    for (const socket of sockets) socket.destroy();
    await served.close();
    if (directory !== undefined) await rm(directory, { recursive: true });
  });

  async function serve(certificate?: ServingCertificate): Promise<void> {
    if (certificate !== undefined) directory = await mkdtemp(join(tmpdir(), 'holdfast-metrics-'));
    if (certificate !== undefined) await renew(certificate);
    const context = { client: api.client, clock: systemClock, log: silentLogger, metrics };
    served = await serveSecureMetrics(context, {
      metricsBindAddress: '127.0.0.1:0',
      metricsSecure: true,
      metricsCertDir: directory,
      metricsAudiences: [],
      tlsMinVersion: 'TLSv1.3',
    });
    while (served.check.notice?.() !== undefined) await systemClock.sleep(10);
  }

  async function renew({ cert, key }: ServingCertificate): Promise<void> {
    await writeFile(join(directory!, 'tls.crt'), cert);
    await writeFile(join(directory!, 'tls.key'), key);
  }

  interface Scrape {
    token?: string;
    path?: string;
    method?: string;
    /** Only servers with this certificate are trusted; absent: any. */
    ca?: string;
  }

  function scrape({ token, path = '/metrics', method = 'GET', ca }: Scrape) {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
    const tls = ca === undefined ? { rejectUnauthorized: false } : { ca };
    const options = { host: '127.0.0.1', port: served.port, path, method, headers, agent: false, ...tls };
    return new Promise<{ status: number; headers: object; body: string }>((resolve, reject) => {
      const sent = request(options, (answer) => {
        let body = '';
        answer.setEncoding('utf8').on('data', (text: string) => (body += text));
        answer.on('end', () => resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body }));
      });
      sent.on('error', reject).end();
    });
  }

  async function open(options: object = {}): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port: served.port!, rejectUnauthorized: false, ...options });
    sockets.push(socket);
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    return socket;
  }

  /** The first line of the answer; empty if the connection is closed without one. */
  async function firstLine(socket: TLSSocket): Promise<string> {
    let text = '';
    socket.on('data', (chunk: Buffer) => (text += chunk.toString('latin1')));
    if (!socket.closed) await new Promise((resolve) => socket.on('close', resolve));
    return text.split('\r\n', 1)[0] ?? '';
  }

  it('are shown to a scraper with the right, by a certificate that the process has made itself', async () => {
    await serve();
    const { status, body } = await scrape({ token: 'good' });
    expect(status).to.equal(200);
    expect(body).to.include('holdfast_build_info{process="webhook",version="1.2.3"} 1');
    const expires =
      /^holdfast_certificate_expiration_timestamp_seconds{server="metrics",certificate="serving"} (\S+)$/m.exec(
        body,
      )?.[1];
    expect(Number(expires) * 1_000).to.be.greaterThan(Date.now() + 80 * 24 * 3_600_000);
    const socket = await open();
    expect(socket.getPeerCertificate().subjectaltname).to.include('DNS:localhost').and.include('IP Address:127.0.0.1');
  });

  it('answer 401 without a token, and 403 to a user without the right', async () => {
    await serve();
    const anonymous = await scrape({});
    expect(anonymous).to.deep.include({ status: 401 });
    expect(anonymous.headers).to.include({ 'www-authenticate': 'Bearer' });
    expect((await scrape({ token: 'other' })).status).to.equal(403);
    const { body } = await scrape({ token: 'good' });
    expect(body).to.include('holdfast_metrics_requests_total{status="401"} 1');
    expect(body).to.include('holdfast_metrics_requests_total{status="403"} 1');
  });

  it('answer 503 while the API server is away', async () => {
    await serve();
    api.before = () => {
      throw new Error('away');
    };
    const { status, headers, body } = await scrape({ token: 'good' });
    expect(status).to.equal(503);
    expect(headers).to.include({ 'retry-after': '5' });
    expect(body).not.to.include('holdfast_');
  });

  it('show nothing on other paths and for other methods', async () => {
    await serve();
    for (const path of ['/', '/healthz', '/metrics/', '//metrics', '/%6detrics'])
      expect((await scrape({ token: 'good', path })).status, path).to.equal(404);
    expect((await scrape({ token: 'good', method: 'POST' })).status).to.equal(405);
    expect((await scrape({ token: 'good', path: '/metrics?name=x' })).status).to.equal(200);
  });

  it('use a new certificate from the directory without a restart, and keep the old one if the new one is broken', async () => {
    const [first, second] = [makeServingCertificate(), makeServingCertificate()];
    await serve(first);
    expect((await scrape({ token: 'good', ca: first.ca })).status).to.equal(200);
    await renew({ ...first, key: second.key });
    await renew(second);
    const isRenewed = () =>
      scrape({ token: 'good', ca: second.ca }).then(
        ({ status }) => status === 200,
        () => false,
      );
    while (!(await isRenewed())) await systemClock.sleep(20);
    await renew({ ...second, key: first.key });
    await systemClock.sleep(300);
    expect(await isRenewed()).to.equal(true);
  });

  it('are not served over plain text or TLS 1.2', async () => {
    await serve();
    const answer = await fetch(`http://127.0.0.1:${String(served.port)}/metrics`).then(
      ({ status }) => status,
      () => 'closed',
    );
    expect(answer).to.equal('closed');
    let code = '';
    await open({ maxVersion: 'TLSv1.2' }).catch((error: unknown) => (code = (error as { code: string }).code));
    expect(code).to.equal('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
  });

  it('refuse too long heads, and bytes that are no HTTP, and serve on', async () => {
    await serve();
    const long = await open();
    long.write(`GET /metrics HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${'a'.repeat(20 * 1024)}\r\n\r\n`);
    expect(await firstLine(long)).to.match(/^HTTP\/1\.1 431 /);
    for (const bytes of ['\0\0\0\0\r\n\r\n', 'GET\r\n\r\n', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n']) {
      const socket = await open();
      socket.write(bytes);
      expect(await firstLine(socket), JSON.stringify(bytes)).to.match(/^(HTTP\/1\.1 40[05] .*)?$/);
    }
    expect(api.tokenReviews).to.deep.equal([]);
    expect((await scrape({ token: 'good' })).status).to.equal(200);
  });

  it('are shown while a client keeps many connections open', async () => {
    await serve();
    for (let count = 0; count < 80; count++) await open();
    expect((await scrape({ token: 'good' })).status).to.equal(200);
    expect(sockets.filter(({ destroyed }) => !destroyed).length).to.be.at.most(64);
  });

  it('are not served at address 0, and an address in use is named', async () => {
    await serve();
    const context = { client: api.client, clock: systemClock, log: silentLogger, metrics: createMetrics('x', '1') };
    const config = { metricsSecure: true, metricsAudiences: [], tlsMinVersion: 'TLSv1.3' } as const;
    const none = await serveSecureMetrics(context, { ...config, metricsBindAddress: '0' });
    expect(none.port).to.equal(undefined);
    const taken = `127.0.0.1:${String(served.port)}`;
    let message = '';
    await serveSecureMetrics(context, { ...config, metricsBindAddress: taken }).catch(
      (error: unknown) => (message = String(error)),
    );
    expect(message).to.include(`cannot listen on ${taken}`);
  });
});
