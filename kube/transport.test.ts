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

  it('sends JSON with credentials, query and user agent, and returns the response', async () => {
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

  it('keeps the path in the URL of the server', async () => {
    connect(inTurn(OK), {}, { ...server.credentials(), server: `${server.url}/k8s/clusters/one/` });
    await get();
    expect(server.seen[0]?.path).to.equal('/k8s/clusters/one/x');
  });

  it('returns undefined for an empty response', async () => {
    connect(inTurn({ status: 200 }));
    expect(await get()).to.equal(undefined);
  });

  it('keeps to its maximum of connections for 200 parallel requests, and reuses them', async () => {
    connect(inTurn(OK), { connections: 4 });
    await Promise.all(Array.from({ length: 200 }, () => get()));
    await Promise.all(Array.from({ length: 200 }, () => get()));
    expect(server.seen).to.have.length(400);
    expect(server.connections).to.be.within(1, 4);
  });

  it('converts a Status into a StatusError', async () => {
    connect(inTurn({ status: 404, body: status(404, 'NotFound', 'x not found') }));
    const error = await requestErrorOf(get());
    expect(error).to.be.instanceOf(StatusError);
    expect(error.message).to.equal('GET /x: 404 NotFound: x not found');
  });

  it('fails at its deadline if the server does not respond', async () => {
    connect(inTurn({ silent: true }));
    expect(await faultOf(get(100))).to.equal('deadline');
  });

  it('fails at its deadline if a response never ends', async () => {
    connect(inTurn({ body: '{"ok":', then: 'open' }));
    expect(await faultOf(get(100))).to.equal('deadline');
  });

  it('fails at its deadline if a server accepts connections and sends nothing', async function () {
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

  it('fails when its caller aborts between two attempts, and sends no further request', async () => {
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

  it('fails when its caller aborts', async () => {
    connect(inTurn({ silent: true }));
    const caller = new AbortController();
    const answer = faultOf(transport.request({ method: 'GET', path: '/x', signal: caller.signal }));
    await server.until(() => server.seen.length === 1);
    caller.abort();
    expect(await answer).to.equal('aborted');
    expect(await faultOf(transport.request({ method: 'GET', path: '/x', signal: caller.signal }))).to.equal('aborted');
    expect(server.seen).to.have.length(1);
  });

  it('retries a read once when the connection is reset', async () => {
    connect(inTurn({ reset: true }, OK));
    expect(await get()).to.deep.equal({ ok: true });
    server.reset();
    server.handle(inTurn({ reset: true }));
    expect(await faultOf(get())).to.equal('broken');
    expect(server.seen).to.have.length(2);
  });

  it('retries a read when the response is incomplete', async () => {
    connect(inTurn({ body: '{"ok":', then: 'reset' }, OK));
    expect(await get()).to.deep.equal({ ok: true });
  });

  it('does not retry a write when the connection is reset, because the server may have carried it out', async () => {
    connect(inTurn({ reset: true }, OK));
    expect(await faultOf(post())).to.equal('broken');
    expect(server.seen).to.have.length(1);
  });

  it('succeeds after the server has closed all kept-alive connections', async () => {
    connect(inTurn(OK));
    await get();
    server.resetConnections();
    await server.until(() => server.liveConnections === 0);
    expect(await get()).to.deep.equal({ ok: true });
  });

  it('retries a write once if no connection is possible, and reports that it was not sent', async () => {
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

  it('rejects a server with a wrong certificate before it sends a byte', async () => {
    connect(inTurn(OK), {}, { ...server.credentials(), tls: () => Promise.resolve({ rejectUnauthorized: true }) });
    expect(await faultOf(get())).to.equal('unsent');
    expect(server.seen).to.have.length(0);
  });

  it('waits for Retry-After after 429 and 503', async () => {
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

  it('does not wait for a Retry-After beyond its deadline, but throws', async () => {
    connect(inTurn({ status: 429, headers: { 'retry-after': '60' }, body: status(429, 'TooManyRequests') }));
    const error = await requestErrorOf(get());
    expect(error).to.include({ status: 429, retryAfterMs: 60_000 });
    expect(server.seen).to.have.length(1);
  });

  it('retries a write after 429 but not after 503', async () => {
    connect(inTurn({ status: 429, headers: { 'retry-after': '0' } }, OK));
    expect(await post()).to.deep.equal({ ok: true });
    server.reset();
    server.handle(inTurn({ status: 503, headers: { 'retry-after': '0' } }, OK));
    expect(await faultOf(post())).to.equal('503');
  });

  it('rejects a response that is not JSON', async () => {
    connect(inTurn({ body: '<html>' }));
    expect(await faultOf(get())).to.equal('malformed');
  });

  it('counts and times every HTTP request', async () => {
    const counted: string[] = [];
    const metrics = { ...silentMetrics };
    metrics.requested = (method, code) => counted.push(`${method} ${code}`);
    connect(inTurn(OK, { status: 404 }), { metrics });
    await get();
    await faultOf(post());
    expect(counted).to.deep.equal(['GET 200', 'POST 404']);
  });

  it('aborts running requests when it is closed', async () => {
    connect(inTurn({ silent: true }));
    const running = faultOf(post());
    await server.until(() => server.seen.length === 1);
    await transport.close();
    expect(await running).to.equal('broken');
    await server.until(() => server.liveConnections === 0);
  });
});
