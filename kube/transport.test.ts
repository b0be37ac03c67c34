import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { expect } from 'chai';
import { FaultServer, type Handler, type Reply, inTurn, status } from '../test/fault-server.js';
import { faultOf, requestErrorOf } from '../test/request-error.js';
import { systemClock } from './clock.js';
import type { Credentials } from './credentials.js';
import { StatusError } from './errors.js';
import { silentMetrics } from './metrics.js';
import { Transport, type TransportOptions } from './transport.js';

const OK: Reply = { body: { ok: true } };

describe('Transport.request', () => {
  let server: FaultServer;
  let transport: Transport;
  before(async () => {
    server = await FaultServer.start(inTurn(OK));
  });
  after(() => server.stop());
  beforeEach(() => server.reset());
  afterEach(() => transport.close());

  /** `random` 0: no jitter. */
  function connect(
    handler: Handler,
    options: TransportOptions = {},
    credentials: Credentials = server.credentials(),
  ): void {
    server.handle(handler);
    transport = new Transport(credentials, { random: () => 0, ...options });
  }

  function get(deadlineMs?: number): Promise<unknown> {
    return transport.request({ method: 'GET', path: '/x', deadlineMs });
  }

  function post(): Promise<unknown> {
    return transport.request({ method: 'POST', path: '/x', body: { a: 1 } });
  }

  it('sends JSON with credentials, query and user agent, and returns the answer', async () => {
    connect(inTurn(OK), { userAgent: 'holdfast/1' });
    const query = { dryRun: 'All', limit: 5, watch: false, missing: undefined };
    const answer = await transport.request({ method: 'POST', path: '/x', query, body: { a: 'ü' } });
    expect(answer).to.deep.equal({ ok: true });
    const seen = server.seen[0]!;
    expect([seen.method, seen.path, seen.query.toString()]).to.deep.equal([
      'POST',
      '/x',
      'dryRun=All&limit=5&watch=false',
    ]);
    expect(JSON.parse(seen.body)).to.deep.equal({ a: 'ü' });
    expect(seen.headers).to.include({
      authorization: 'Bearer token',
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'holdfast/1',
    });
  });

  it('keeps the path of a server that is not at the root of its host', async () => {
    connect(inTurn(OK), {}, { ...server.credentials(), server: `${server.url}/k8s/clusters/one/` });
    await get();
    expect(server.seen[0]?.path).to.equal('/k8s/clusters/one/x');
  });

  it('answers undefined to an empty answer', async () => {
    connect(inTurn({ status: 200 }));
    expect(await get()).to.equal(undefined);
  });

  it('opens no more connections than it may for 200 requests at once, and uses them again', async () => {
    connect(inTurn(OK), { connections: 4 });
    await Promise.all(Array.from({ length: 200 }, () => get()));
    await Promise.all(Array.from({ length: 200 }, () => get()));
    expect(server.seen).to.have.length(400);
    expect(server.connections).to.be.within(1, 4);
  });

  it('turns a Status into a StatusError', async () => {
    connect(inTurn({ status: 404, body: status(404, 'NotFound', 'x not found') }));
    const error = await requestErrorOf(get());
    expect(error).to.be.instanceOf(StatusError);
    expect(error.message).to.equal('GET /x: 404 NotFound: x not found');
  });

  it('gives up on a silent server at its deadline', async () => {
    connect(inTurn({ silent: true }));
    expect(await faultOf(get(100))).to.equal('deadline');
  });

  it('gives up on an answer that never ends at its deadline', async () => {
    connect(inTurn({ body: '{"ok":', then: 'open' }));
    expect(await faultOf(get(100))).to.equal('deadline');
  });

  it('gives up at its deadline on a server that accepts connections and says nothing', async function () {
    this.timeout(5_000); // half of what the connection is given to be set up
    const sockets: Socket[] = [];
    const mute = createServer((socket) => sockets.push(socket));
    await once(mute.listen(0, '127.0.0.1'), 'listening');
    const { port } = mute.address() as AddressInfo;
    transport = new Transport({ ...server.credentials(), server: `https://127.0.0.1:${port}` });
    expect(await faultOf(get(100))).to.equal('deadline');
    for (const socket of sockets) socket.destroy();
    await once(mute.close(), 'close');
  });

  it('gives up when its caller does, also between two attempts, and asks no more', async () => {
    connect(inTurn({ status: 429, headers: { 'retry-after': '5' }, body: status(429, 'TooManyRequests') }));
    const caller = new AbortController();
    const answer = faultOf(transport.request({ method: 'GET', path: '/x', signal: caller.signal }));
    await server.until(() => server.seen.length === 1);
    // the refusal is read by then
    setTimeout(() => caller.abort(), 50);
    expect(await answer).to.equal('aborted');
    // what of it nobody handles is told now, and ends a process
    await transport.close();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(server.seen).to.have.length(1);
  });

  it('gives up when its caller does', async () => {
    connect(inTurn({ silent: true }));
    const caller = new AbortController();
    const answer = faultOf(transport.request({ method: 'GET', path: '/x', signal: caller.signal }));
    await server.until(() => server.seen.length === 1);
    caller.abort();
    expect(await answer).to.equal('aborted');
    expect(await faultOf(transport.request({ method: 'GET', path: '/x', signal: caller.signal }))).to.equal('aborted');
    expect(server.seen).to.have.length(1);
  });

  it('sends a read again, once, when the connection is reset', async () => {
    connect(inTurn({ reset: true }, OK));
    expect(await get()).to.deep.equal({ ok: true });
    server.reset();
    server.handle(inTurn({ reset: true }));
    expect(await faultOf(get())).to.equal('broken');
    expect(server.seen).to.have.length(2);
  });

  it('sends a read again when the answer breaks in the middle', async () => {
    connect(inTurn({ body: '{"ok":', then: 'reset' }, OK));
    expect(await get()).to.deep.equal({ ok: true });
  });

  it('does not send a write again when the connection is reset: the server may have acted', async () => {
    connect(inTurn({ reset: true }, OK));
    expect(await faultOf(post())).to.equal('broken');
    expect(server.seen).to.have.length(1);
  });

  it('survives that the server closed all kept-alive connections', async () => {
    connect(inTurn(OK));
    await get();
    server.resetConnections();
    await server.until(() => server.liveConnections === 0);
    expect(await get()).to.deep.equal({ ok: true });
  });

  it('sends a write once more when nobody listened, and says that it was not sent', async () => {
    let restart = () => Promise.resolve();
    connect(inTurn(OK), { clock: { ...systemClock, sleep: () => restart() } });
    await server.stop();
    try {
      expect(await faultOf(post())).to.equal('unsent');
      restart = () => server.restart();
      expect(await post()).to.deep.equal({ ok: true });
    } finally {
      await server.restart();
    }
  });

  it('refuses a server with a certificate of somebody else, before it sends a byte', async () => {
    connect(inTurn(OK), {}, { ...server.credentials(), tls: () => Promise.resolve({ rejectUnauthorized: true }) });
    expect(await faultOf(get())).to.equal('unsent');
    expect(server.seen).to.have.length(0);
  });

  it('waits as long as Retry-After says after 429 and 503', async () => {
    connect(
      inTurn(
        { status: 429, headers: { 'retry-after': '0.05' }, body: status(429, 'TooManyRequests') },
        { status: 503, headers: { 'retry-after': '0.05' }, body: status(503, 'ServiceUnavailable') },
        OK,
      ),
    );
    const started = Date.now();
    expect(await get()).to.deep.equal({ ok: true });
    expect(Date.now() - started).to.be.at.least(95);
  });

  it('does not wait for a Retry-After beyond its deadline, but tells its caller', async () => {
    connect(inTurn({ status: 429, headers: { 'retry-after': '60' }, body: status(429, 'TooManyRequests') }));
    const error = await requestErrorOf(get());
    expect(error).to.include({ status: 429, retryAfterMs: 60_000 });
    expect(server.seen).to.have.length(1);
  });

  it('repeats a write after 429 but not after 503', async () => {
    connect(inTurn({ status: 429, headers: { 'retry-after': '0' } }, OK));
    expect(await post()).to.deep.equal({ ok: true });
    server.reset();
    server.handle(inTurn({ status: 503, headers: { 'retry-after': '0' } }, OK));
    expect(await faultOf(post())).to.equal('503');
  });

  it('refuses an answer that is not JSON', async () => {
    connect(inTurn({ body: '<html>' }));
    expect(await faultOf(get())).to.equal('malformed');
  });

  it('counts and times every exchange', async () => {
    const counted: string[] = [];
    const metrics = { ...silentMetrics };
    metrics.requested = (method, code) => counted.push(`${method} ${code}`);
    connect(inTurn(OK, { status: 404 }), { metrics });
    await get();
    await faultOf(post());
    expect(counted).to.deep.equal(['GET 200', 'POST 404']);
  });

  it('breaks what still runs when it is closed', async () => {
    connect(inTurn({ silent: true }));
    const running = faultOf(post());
    await server.until(() => server.seen.length === 1);
    await transport.close();
    expect(await running).to.equal('broken');
    await server.until(() => server.liveConnections === 0);
  });
});
