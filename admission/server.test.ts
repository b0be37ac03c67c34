import { once } from 'node:events';
import { connect } from 'node:tls';
import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { AdmissionClient, type HttpRequest } from '../test/https/admission-client.js';
import { type ServingCertificate, makeServingCertificate } from '../test/https/certificate.js';
import { ManualClock } from '../test/manual-clock.js';
import { ReviewError } from './review.js';
import { AdmissionServer, type AdmissionServerOptions } from './server.js';

const LIMIT = 100_000;

describe('the admission server', () => {
  let certificate: ServingCertificate;
  let server: AdmissionServer;
  let client: AdmissionClient;
  let rejected: number[];
  let answer: (body: unknown) => Promise<string>;

  before(() => {
    certificate = makeServingCertificate();
  });
  beforeEach(() => {
    rejected = [];
    answer = (body) => Promise.resolve(JSON.stringify({ echo: body }));
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  async function start(options: Partial<AdmissionServerOptions> = {}, maxVersion?: 'TLSv1.2'): Promise<void> {
    server = new AdmissionServer({
      address: { host: '127.0.0.1', port: 0 },
      minVersion: 'TLSv1.3',
      routes: { '/mutate-launcher-pods': (body) => answer(body) },
      log: silentLogger,
      onRejected: (status) => rejected.push(status),
      maxBodyBytes: LIMIT,
      ...options,
    });
    await server.listen();
    server.setCertificate(certificate);
    client = new AdmissionClient(server.port, { ca: certificate.ca, ...(maxVersion && { maxVersion }) });
  }

  it('sends the answer of the route, and keeps the connection open', async () => {
    await start();
    for (let count = 0; count < 3; count++) {
      const { status, headers, body } = await client.send({ body: '{"a":"ü"}' });
      expect(status).to.equal(200);
      expect(headers['content-type']).to.equal('application/json');
      expect(body).to.equal('{"echo":{"a":"ü"}}');
    }
    const [socket] = client.sockets;
    expect(socket?.getProtocol()).to.equal('TLSv1.3');
    expect(client.sockets).to.have.length(1);
  });

  it('does not count the time in which a client sends its body', async () => {
    let now = 0;
    const wait = (arrivedAt: number) => Promise.resolve(String(now - arrivedAt));
    const routes = { '/mutate-launcher-pods': (_body: unknown, arrivedAt: number) => wait(arrivedAt) };
    await start({ clock: { ...systemClock, now: () => now }, routes });
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: certificate.ca });
    await once(socket, 'secureConnect');
    const head =
      'POST /mutate-launcher-pods HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n';
    socket.write(`${head}expect: 100-continue\r\n\r\n`);
    await once(socket, 'data'); // the server waits for the body
    now = 3_000;
    socket.write('{}');
    const [answer] = (await once(socket, 'data')) as [Buffer];
    socket.destroy();
    expect(answer.toString()).to.match(/\r\n\r\n0$/);
  });

  it('knows since when requests wait while others keep the process busy', async () => {
    const WORK_MS = 30;
    let waits: number[] = [];
    const work = (arrivedAt: number) => {
      waits.push(systemClock.now() - arrivedAt);
      for (const end = Date.now() + WORK_MS; Date.now() < end;);
      return Promise.resolve('{}');
    };
    await start({ routes: { '/mutate-launcher-pods': (_body, arrivedAt) => work(arrivedAt) } });
    const clients = Array.from({ length: 10 }, () => new AdmissionClient(server.port, { ca: certificate.ca }));
    const sendAll = () => Promise.all(clients.map((each) => each.send({ body: '{}' })));
    await sendAll(); // opens the connections
    waits = [];
    await sendAll();
    for (const each of clients) each.close();
    expect(Math.max(...waits)).to.be.above(3 * WORK_MS);
  });

  const refusals: { name: string; given: HttpRequest; status: number; text: string }[] = [
    { name: 'another method', given: { method: 'GET' }, status: 405, text: 'send a POST' },
    { name: 'another path', given: { path: '/elsewhere' }, status: 404, text: '/mutate-launcher-pods' },
    { name: 'no JSON', given: { body: '{' }, status: 400, text: 'not JSON' },
    { name: 'nothing', given: { body: '' }, status: 400, text: 'not JSON' },
    { name: 'plain text', given: { headers: { 'content-type': 'text/plain' } }, status: 415, text: '"text/plain"' },
    { name: 'no content type', given: { headers: { 'content-type': '' } }, status: 415, text: 'application/json' },
    { name: 'a compressed body', given: { headers: { 'content-encoding': 'gzip' } }, status: 415, text: '"gzip"' },
    { name: 'a 10 MB body', given: { body: Buffer.alloc(1e7, ' ') }, status: 413, text: 'larger than 4194304 bytes' },
  ];
  for (const { name, given, status, text } of refusals) {
    it(`rejects ${name} with ${status} and a reason, and keeps serving`, async () => {
      await start({ maxBodyBytes: 4 * 1024 * 1024 });
      const refusal = await client.send({ body: '{}', ...given });
      expect(refusal.status).to.equal(status);
      expect(refusal.body).to.include(text);
      expect(rejected).to.deep.equal([status]);
      expect((await client.send({ body: '1' })).status).to.equal(200);
    });
  }

  it('lists the allowed methods', async () => {
    await start();
    expect((await client.send({ method: 'DELETE' })).headers.allow).to.equal('POST');
  });

  it('accepts a JSON content type with parameters', async () => {
    await start();
    const headers = { 'content-type': 'Application/JSON; charset=utf-8' };
    expect((await client.send({ body: '1', headers })).status).to.equal(200);
  });

  it('answers 400 to a body that is not a review, and 500 after an internal error', async () => {
    await start();
    answer = () => Promise.reject(new ReviewError('kind is "Pod"'));
    expect(await client.send({ body: '{}' })).to.include({ status: 400, body: 'kind is "Pod"\n' });
    answer = () => Promise.reject(new RangeError('a bug'));
    const failed = await client.send({ body: '{}' });
    expect(failed.status).to.equal(500);
    expect(failed.body).not.to.include('a bug');
  });

  it('keeps serving after clients that disconnect in the middle of a body', async () => {
    await start();
    await new Promise<void>((resolve) => {
      const socket = connect({ host: '127.0.0.1', port: server.port, ca: certificate.ca }, () => {
        socket.write(
          'POST /mutate-launcher-pods HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 50\r\n\r\n{"a"',
          () => socket.destroy(),
        );
      });
      socket.on('close', resolve);
    });
    expect((await client.send({ body: '1' })).status).to.equal(200);
    expect(rejected).to.deep.equal([]);
  });

  it('uses a new certificate for new connections and keeps the open ones', async () => {
    await start();
    await client.send({ body: '1' });
    const [open] = client.sockets;
    const renewed = makeServingCertificate();
    server.setCertificate(renewed);
    await client.send({ body: '2' });
    expect(client.sockets[0]).to.equal(open);
    expect(open?.destroyed).to.be.false;
    const another = new AdmissionClient(server.port, { ca: renewed.ca });
    expect((await another.send({ body: '3' })).status).to.equal(200);
    another.close();
  });

  it('accepts nothing older than TLS 1.3', async () => {
    await start({}, 'TLSv1.2');
    expect((await client.sendExpectingError({ body: '1' })).message).to.match(/protocol version/i);
  });

  it('accepts TLS 1.2 if configured, also after a new certificate', async () => {
    await start({ minVersion: 'TLSv1.2' }, 'TLSv1.2');
    await client.send({ body: '1' });
    expect(client.sockets[0]?.getProtocol()).to.equal('TLSv1.2');
    server.setCertificate(certificate);
    const another = new AdmissionClient(server.port, { ca: certificate.ca, maxVersion: 'TLSv1.2' });
    expect((await another.send({ body: '1' })).status).to.equal(200);
    another.close();
  });

  it('finishes running requests when it stops, and accepts no more', async () => {
    await start();
    let release: () => void = () => undefined;
    const entered = new Promise<void>((resolve) => {
      answer = async () => {
        resolve();
        await new Promise<void>((done) => (release = done));
        return '"late"';
      };
    });
    const underWay = client.send({ body: '1' });
    await entered;
    const refused = new AdmissionClient(server.port, { ca: certificate.ca });
    const stopped = server.stop();
    expect((await refused.sendExpectingError({ body: '2' })).code).to.equal('ECONNREFUSED');
    release();
    const { body, headers } = await underWay;
    expect(body).to.equal('"late"');
    expect(headers.connection).to.equal('close');
    await stopped;
  });

  it('answers a review that is sent on an idle connection as the stop begins, and then closes the connection', async () => {
    await start();
    await client.send({ body: '1' });
    const [open] = client.sockets;
    const closed = once(open!, 'close');
    const stopped = server.stop();
    const { status, headers } = await client.send({ body: '2' });
    expect(status).to.equal(200);
    expect(headers.connection).to.equal('close');
    await Promise.all([stopped, closed]);
  });

  it('closes idle connections two seconds after the stop has begun', async () => {
    const clock = new ManualClock(0);
    await start({ clock });
    await client.send({ body: '1' });
    const stopped = server.stop();
    clock.advanceTo(2_000);
    await stopped;
    expect(clock.next).to.equal(undefined);
  });

  it('names the address on which it cannot listen', async () => {
    await start();
    const second = new AdmissionServer({
      address: { host: '127.0.0.1', port: server.port },
      minVersion: 'TLSv1.3',
      routes: {},
      log: silentLogger,
    });
    const listened: unknown = await second.listen().catch((error: unknown) => error);
    const message = `cannot listen on 127.0.0.1:${server.port}`;
    expect(listened).to.be.instanceOf(Error).with.property('message').that.includes(message);
  });
});
