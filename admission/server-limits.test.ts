import { once } from 'node:events';
import { createConnection } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type TLSSocket, connect } from 'node:tls';
import { expect } from 'chai';
import { systemClock } from '../kube/clock.js';
import { silentLogger } from '../kube/log.js';
import { AdmissionClient } from '../test/https/admission-client.js';
import { type ServingCertificate, makeServingCertificate } from '../test/https/certificate.js';
import { AdmissionServer, type AdmissionServerOptions } from './server.js';

const KIB = 1024;
const CHUNK = ' '.repeat(64 * KIB);

describe('the limits of the admission server', () => {
  let certificate: ServingCertificate;
  let server: AdmissionServer;
  let client: AdmissionClient;
  let rejected: number[];
  let onRejected: (status: number) => unknown;
  let sockets: TLSSocket[];
  let answer: (body: unknown, arrivedAt: number) => Promise<string>;

  before(() => {
    certificate = makeServingCertificate();
  });
  beforeEach(() => {
    rejected = [];
    onRejected = () => undefined;
    sockets = [];
    answer = () => Promise.resolve('{}');
  });
  afterEach(async () => {
    client.close();
    for (const socket of sockets) socket.destroy();
    await server.stop();
  });

  async function start(options: Partial<AdmissionServerOptions>): Promise<void> {
    server = new AdmissionServer({
      address: { host: '127.0.0.1', port: 0 },
      minVersion: 'TLSv1.3',
      routes: { '/mutate-launcher-pods': (body, arrivedAt) => answer(body, arrivedAt) },
      log: silentLogger,
      onRejected: (status) => {
        rejected.push(status);
        onRejected(status);
      },
      ...options,
    });
    await server.listen();
    server.setCertificate(certificate);
    client = new AdmissionClient(server.port, { ca: certificate.ca });
  }

  async function open(localAddress = '127.0.0.1'): Promise<TLSSocket> {
    const below = createConnection({ host: '127.0.0.1', port: server.port, localAddress });
    const socket = connect({ socket: below, host: '127.0.0.1', ca: certificate.ca });
    sockets.push(socket);
    // the server closes it, perhaps while it is written to
    socket.on('error', () => undefined);
    await once(socket, 'secureConnect');
    return socket;
  }

  /** Sends the head of a request and the beginning of its body, and never the rest. */
  async function sendHalf(socket: TLSSocket, sent = ''): Promise<void> {
    const head = `POST /mutate-launcher-pods HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 4000000\r\n\r\n`;
    await new Promise<void>((resolve) => socket.write(head + sent, () => resolve()));
  }

  async function closed(socket: TLSSocket): Promise<string> {
    const chunks: Buffer[] = [];
    socket.on('data', (chunk: Buffer) => chunks.push(chunk));
    // once() would reject if the connection was reset
    if (!socket.closed) await new Promise((resolve) => socket.on('close', resolve));
    return Buffer.concat(chunks).toString();
  }

  it('answer 408 to a body that does not end in time, and close its connection', async () => {
    await start({ requestMs: 200 });
    const socket = await open();
    await sendHalf(socket, '{"a"');
    expect(await closed(socket)).to.match(/^HTTP\/1\.1 408 /);
  });

  it('answer a request on a connection that was opened long before, as API servers do', async function () {
    this.timeout(20_000);
    await start({});
    const socket = await open();
    // longer than the time in which a request should arrive
    await pause(7_000);
    socket.write(requestOf('{}'));
    const [head] = (await once(socket, 'data')) as [Buffer];
    expect(head.toString()).to.match(/^HTTP\/1\.1 200 /);
  });

  it('close a connection on which no request arrives', async () => {
    await start({ requestMs: 200 });
    await closed(await open());
  });

  it('drop the oldest incomplete bodies for younger ones, even if their clients send more', async () => {
    await start({ maxBodiesBytes: 1024 * KIB });
    const slow: TLSSocket[] = [];
    for (let count = 0; count < 20; count++) {
      const socket = await open();
      slow.push(socket);
      await sendHalf(socket, CHUNK);
    }
    expect(await closed(slow[0]!)).to.match(/^HTTP\/1\.1 408 /);
    const body = JSON.stringify('x'.repeat(500 * KIB));
    for (let count = 0; count < 5; count++) {
      for (const socket of slow) socket.write(CHUNK);
      expect((await client.send({ body })).status).to.equal(200);
    }
    expect(new Set(rejected)).to.deep.equal(new Set([408]));
  });

  it('count the memory of each piece of a body, so that many small ones are refused', async () => {
    await start({ maxBodiesBytes: 1024 * KIB });
    const socket = await open();
    const head =
      'POST /mutate-launcher-pods HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n';
    socket.write(`${head}${'1\r\n \r\n'.repeat(4 * KIB)}0\r\n\r\n`);
    const [answered] = (await once(socket, 'data')) as [Buffer];
    expect(answered.toString()).to.match(/^HTTP\/1\.1 503 /);
  });

  it('ignore headers of a request beyond 64', async () => {
    await start({});
    const socket = await open();
    const others = Array.from({ length: 64 }, (_, index) => `h${index}:\r\n`).join('');
    socket.write(requestOf('{}').replace('host: x\r\n', `host: x\r\n${others}`));
    const [answered] = (await once(socket, 'data')) as [Buffer];
    expect(answered.toString()).to.match(/^HTTP\/1\.1 415 /);
  });

  it('answer 503 while reviewed bodies use the whole budget, and serve again after that', async () => {
    await start({ maxBodiesBytes: 100 * KIB });
    const { release, areEntered } = holdAnswers(1);
    const body = JSON.stringify('x'.repeat(70 * KIB));
    const first = client.send({ body });
    await areEntered;
    const second = new AdmissionClient(server.port, { ca: certificate.ca });
    const refused = await second.send({ body });
    expect(refused).to.deep.include({ status: 503, body: 'too many reviews at the same time: retry later\n' });
    expect(refused.headers).to.include({ 'retry-after': '1' });
    release();
    expect((await first).status).to.equal(200);
    answer = () => Promise.resolve('{}');
    expect((await second.send({ body })).status).to.equal(200);
    second.close();
  });

  it('close the least recently used connection if there are too many, and serve the new one', async () => {
    await start({ maxConnections: 10 });
    const idle: TLSSocket[] = [];
    for (let count = 0; count < 10; count++) idle.push(await open());
    await sendHalf(idle[0]!, '{');
    expect((await client.send({ body: '{}' })).status).to.equal(200);
    await closed(idle[0]!);
    for (let count = 0; count < 9; count++) idle.push(await open());
    // used since the others were opened
    expect((await client.send({ body: '{}' })).status).to.equal(200);
    expect(client.sockets).to.have.length(1);
    for (const socket of idle.slice(0, 10)) await closed(socket);
  });

  it('do not delay a stop for connections that never sent a request', async () => {
    const soon = (ms: number, run: () => void) => systemClock.setTimer(ms < 5_000 ? 0 : ms, run);
    await start({ clock: { ...systemClock, setTimer: soon } });
    const socket = await open();
    await Promise.all([server.stop(), closed(socket)]);
  });

  it('keep a connection with a running request while many others are opened', async () => {
    await start({ maxConnections: 3 });
    const { release, areEntered } = holdAnswers(1);
    const underWay = client.send({ body: '{}' });
    await areEntered;
    for (let count = 0; count < 8; count++) await open();
    release();
    expect(await underWay).to.include({ status: 200, body: '{}' });
  });

  it('keep idle connections of an address while another address opens too many', async () => {
    await start({ maxConnections: 10 });
    expect((await client.send({ body: '{}' })).status).to.equal(200);
    const [kept] = client.sockets;
    const others: TLSSocket[] = [];
    for (let count = 0; count < 25; count++) others.push(await open('127.0.0.2'));
    await closed(others[0]!);
    expect((await client.send({ body: '{}' })).status).to.equal(200);
    expect(client.sockets).to.deep.equal([kept]);
  });

  it('serve a new address even if another one has requests on all available connections', async () => {
    await start({ maxConnections: 4 });
    const { release, areEntered } = holdAnswers(4);
    for (let count = 0; count < 4; count++) {
      const socket = await open('127.0.0.2');
      socket.write(requestOf('"busy"'));
    }
    await areEntered;
    answer = () => Promise.resolve('{}');
    expect((await client.send({ body: '{}' })).status).to.equal(200);
    release();
  });

  it('answer a review while large reviews of another namespace wait for live reads, and know since when these wait', async () => {
    let now = 0;
    await start({ clock: { ...systemClock, now: () => now } });
    const wasRefused = new Promise((resolve) => (onRejected = resolve));
    const { release, areEntered } = holdAnswers(1);
    const body = reviewOf('tenant', 3.5 * 1024 * KIB);
    const tenants = Array.from({ length: 6 }, () => new AdmissionClient(server.port, { ca: certificate.ca }));
    const statuses = Promise.all(tenants.map(async (tenant) => (await tenant.send({ body })).status));
    await areEntered;
    const waits: number[] = [];
    answer = (_body, arrivedAt) => Promise.resolve(String(waits.push(now - arrivedAt)));
    await wasRefused;
    now = 3_000;
    expect((await client.send({ body: reviewOf('other', 10) })).status).to.equal(200);
    release();
    // one is reviewed, four wait, and one is too many
    expect((await statuses).sort()).to.deep.equal([200, 200, 200, 200, 200, 503]);
    expect(waits).to.deep.equal([0, 3_000, 3_000, 3_000, 3_000]);
    for (const tenant of tenants) tenant.close();
  });

  it('count requests without a body that wait in the queue', async () => {
    await start({ maxBodiesBytes: 9 * 1024 * KIB });
    const { release, areEntered } = holdAnswers(2);
    const tenants = ['a', 'b'].map((namespace) => {
      const tenant = new AdmissionClient(server.port, { ca: certificate.ca });
      return tenant.send({ body: reviewOf(namespace, 4096 * KIB - 100) }).finally(() => tenant.close());
    });
    await areEntered;
    const first = new Promise<number>((resolve) => (onRejected = resolve));
    const socket = await open();
    socket.write(requestOf('').repeat(1_000) + requestOf('', 'nowhere'));
    expect(await first).to.be.oneOf([408, 503]);
    release();
    await Promise.all(tenants);
  });

  /** Answers wait until they are released. */
  function holdAnswers(count: number): { release: () => void; areEntered: Promise<void> } {
    let release: () => void = () => undefined;
    const released = new Promise<void>((resolve) => (release = resolve));
    let entered = 0;
    const areEntered = new Promise<void>((resolve) => {
      answer = async () => {
        entered += 1;
        if (entered === count) resolve();
        await released;
        return '{}';
      };
    });
    return { release, areEntered };
  }

  function reviewOf(namespace: string, bytes: number): string {
    return JSON.stringify({ request: { namespace, object: 'x'.repeat(bytes) } });
  }

  function requestOf(body: string, path = 'mutate-launcher-pods'): string {
    return `POST /${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  }
});
