import { once } from 'node:events';
import { type TLSSocket, connect } from 'node:tls';
import { expect } from 'chai';
import { systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import { AdmissionClient } from '../../test/admission-client.js';
import { type ServingCertificate, makeServingCertificate } from '../../test/certificate.js';
import { AdmissionServer, type AdmissionServerOptions } from './server.js';

const KIB = 1024;
const CHUNK = ' '.repeat(64 * KIB);

describe('the limits of the admission server', () => {
  let certificate: ServingCertificate;
  let server: AdmissionServer;
  let client: AdmissionClient;
  let rejected: number[];
  let sockets: TLSSocket[];
  let answer: (body: unknown) => Promise<string>;

  before(() => {
    certificate = makeServingCertificate();
  });
  beforeEach(() => {
    rejected = [];
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
      routes: { '/mutate-launcher-pods': (body) => answer(body) },
      log: silentLogger,
      onRejected: (status) => rejected.push(status),
      ...options,
    });
    await server.listen();
    server.use(certificate);
    client = new AdmissionClient(server.port, { ca: certificate.ca });
  }

  async function open(): Promise<TLSSocket> {
    const socket = connect({ host: '127.0.0.1', port: server.port, ca: certificate.ca });
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

  it('answers 408 to a body that does not end in time, and closes its connection', async () => {
    await start({ requestMs: 200 });
    const socket = await open();
    await sendHalf(socket, '{"a"');
    expect(await closed(socket)).to.match(/^HTTP\/1\.1 408 /);
  });

  it('closes a connection on which no request arrives', async () => {
    await start({ requestMs: 200 });
    await closed(await open());
  });

  it('gives up the oldest incomplete bodies for younger ones, whatever their senders add later', async () => {
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

  it('answers 503 while bodies that are being reviewed use all of the budget, and serves again after that', async () => {
    await start({ maxBodiesBytes: 100 * KIB });
    let release: () => void = () => undefined;
    const entered = new Promise<void>((resolve) => {
      answer = async () => {
        resolve();
        await new Promise<void>((done) => (release = done));
        return '{}';
      };
    });
    const body = JSON.stringify('x'.repeat(70 * KIB));
    const first = client.send({ body });
    await entered;
    const second = new AdmissionClient(server.port, { ca: certificate.ca });
    expect(await second.send({ body })).to.deep.include({ status: 503, body: 'too many reviews at once: try again\n' });
    release();
    expect((await first).status).to.equal(200);
    answer = () => Promise.resolve('{}');
    expect((await second.send({ body })).status).to.equal(200);
    second.close();
  });

  it('closes the connection that has been unused for longest when there are too many, and serves the new one', async () => {
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

  it('does not wait for connections that never sent a request when it stops', async () => {
    const soon = (ms: number, run: () => void) => systemClock.setTimer(ms < 1_000 ? 0 : ms, run);
    await start({ clock: { ...systemClock, setTimer: soon } });
    const socket = await open();
    await Promise.all([server.stop(), closed(socket)]);
  });

  it('keeps a connection on which it still answers, however many others are opened', async () => {
    await start({ maxConnections: 3 });
    let release: () => void = () => undefined;
    const entered = new Promise<void>((resolve) => {
      answer = async () => {
        resolve();
        await new Promise<void>((done) => (release = done));
        return '"late"';
      };
    });
    const underWay = client.send({ body: '{}' });
    await entered;
    for (let count = 0; count < 8; count++) await open();
    release();
    expect(await underWay).to.include({ status: 200, body: '"late"' });
  });
});
