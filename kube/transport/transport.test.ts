import { once } from 'node:events';
import { type AddressInfo, type Socket, createServer } from 'node:net';
import { expect } from 'chai';
import sinon from 'sinon';
import { inTurn, status } from '../../test/https/fault-server.js';
import { faultOf, requestErrorOf } from '../../test/request-error.js';
import { systemClock } from '../clock.js';
import { StatusError } from '../errors.js';
import { silentMetrics } from '../metrics.js';
import { OK, TransportHarness } from '../../test/https/transport-harness.js';
import { TurnCounter } from '../../test/turn-counter.js';

describe('Transport.request', () => {
  const harness = new TransportHarness();

  it('sends JSON with credentials, query and user agent, and returns the response', async () => {
    harness.connect(inTurn(OK), { userAgent: 'holdfast/1' });
    const query = { dryRun: 'All', limit: 5, watch: false, missing: undefined };
    const answer = await harness.transport.request({ method: 'POST', path: '/x', query, body: { a: 'ü' } });
    expect(answer).to.deep.equal({ ok: true });
    const seen = harness.server.seen[0]!;
    const { method, path } = seen;
    expect([method, path, seen.query.toString()]).to.deep.equal(['POST', '/x', 'dryRun=All&limit=5&watch=false']);
    expect(JSON.parse(seen.body)).to.deep.equal({ a: 'ü' });
    expect(seen.headers).to.include({
      authorization: 'Bearer token',
      'content-type': 'application/json',
      accept: 'application/json',
      'user-agent': 'holdfast/1',
    });
  });

  it('keeps the path in the URL of the server', async () => {
    const server = `${harness.server.url}/k8s/clusters/one/`;
    harness.connect(inTurn(OK), {}, { ...harness.server.credentials(), server });
    await harness.get();
    expect(harness.server.seen[0]?.path).to.equal('/k8s/clusters/one/x');
  });

  it('returns undefined for an empty response', async () => {
    harness.connect(inTurn({ status: 200 }));
    expect(await harness.get()).to.equal(undefined);
  });

  it('keeps to its maximum of connections for 200 parallel requests, and reuses them', async () => {
    harness.connect(inTurn(OK), { connections: 4 });
    await Promise.all(Array.from({ length: 200 }, () => harness.get()));
    await Promise.all(Array.from({ length: 200 }, () => harness.get()));
    expect(harness.server.seen).to.have.length(400);
    expect(harness.server.connections).to.be.within(1, 4);
  });

  it('parses each long answer in a turn of the event loop of its own', async () => {
    harness.connect(inTurn({ body: { text: 'x'.repeat(100_000) } }));
    const parse = JSON.parse;
    const counter = new TurnCounter();
    const turns: number[] = [];
    const parsed = sinon.stub(JSON, 'parse').callsFake((text: string): unknown => {
      if (text.length > 100_000) turns.push(counter.turns);
      return parse(text);
    });
    await Promise.all(Array.from({ length: 64 }, () => harness.get()));
    parsed.restore();
    counter.stop();
    expect(new Set(turns).size).to.equal(64);
  });

  it('returns the objects of an answer without their managedFields if told to', async () => {
    const items = [{ metadata: { labels: {}, managedFields: [{ manager: 'm' }], name: 'ü' } }];
    harness.connect(inTurn({ body: { items } }, { body: { items } }));
    expect(await harness.get()).to.deep.equal({ items });
    const answer = await harness.transport.request({ method: 'GET', path: '/x', dropsManagedFields: true });
    expect(answer).to.deep.equal({ items: [{ metadata: { labels: {}, name: 'ü' } }] });
  });

  it('converts a Status into a StatusError', async () => {
    harness.connect(inTurn({ status: 404, body: status(404, 'NotFound', 'x not found') }));
    const error = await requestErrorOf(harness.get());
    expect(error).to.be.instanceOf(StatusError);
    expect(error.message).to.equal('GET /x: 404 NotFound: x not found');
  });

  it('fails at its deadline if the server does not respond', async () => {
    harness.connect(inTurn({ silent: true }));
    expect(await faultOf(harness.get(100))).to.equal('deadline');
  });

  it('fails at its deadline if a response never ends', async () => {
    harness.connect(inTurn({ body: '{"ok":', then: 'open' }));
    expect(await faultOf(harness.get(100))).to.equal('deadline');
  });

  it('fails at its deadline if a server accepts connections and sends nothing', async function () {
    this.timeout(5_000); // half of what the connection is given to be set up
    const sockets: Socket[] = [];
    const mute = createServer((socket) => sockets.push(socket));
    await once(mute.listen(0, '127.0.0.1'), 'listening');
    const { port } = mute.address() as AddressInfo;
    harness.connect(inTurn(OK), {}, { ...harness.server.credentials(), server: `https://127.0.0.1:${port}` });
    expect(await faultOf(harness.get(100))).to.equal('deadline');
    for (const socket of sockets) socket.destroy();
    await once(mute.close(), 'close');
  });

  it('fails when its caller aborts between two attempts, and sends no further request', async () => {
    harness.connect(inTurn({ status: 429, headers: { 'retry-after': '5' }, body: status(429, 'TooManyRequests') }));
    const caller = new AbortController();
    const answer = faultOf(harness.transport.request({ method: 'GET', path: '/x', signal: caller.signal }));
    await harness.server.until(() => harness.server.seen.length === 1);
    // the refusal is read by then
    setTimeout(() => caller.abort(), 50);
    expect(await answer).to.equal('aborted');
    // what of it nobody handles is told now, and ends a process
    await harness.transport.close();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(harness.server.seen).to.have.length(1);
  });

  it('fails when its caller aborts', async () => {
    harness.connect(inTurn({ silent: true }));
    const caller = new AbortController();
    const request = { method: 'GET', path: '/x', signal: caller.signal } as const;
    const answer = faultOf(harness.transport.request(request));
    await harness.server.until(() => harness.server.seen.length === 1);
    caller.abort();
    expect(await answer).to.equal('aborted');
    expect(await faultOf(harness.transport.request(request))).to.equal('aborted');
    expect(harness.server.seen).to.have.length(1);
  });

  it('retries a read once when the connection is reset', async () => {
    harness.connect(inTurn({ reset: true }, OK));
    expect(await harness.get()).to.deep.equal({ ok: true });
    harness.server.reset();
    harness.server.handle(inTurn({ reset: true }));
    expect(await faultOf(harness.get())).to.equal('broken');
    expect(harness.server.seen).to.have.length(2);
  });

  it('retries a read when the response is incomplete', async () => {
    harness.connect(inTurn({ body: '{"ok":', then: 'reset' }, OK));
    expect(await harness.get()).to.deep.equal({ ok: true });
  });

  it('does not retry a write when the connection is reset, because the server may have carried it out', async () => {
    harness.connect(inTurn({ reset: true }, OK));
    expect(await faultOf(harness.post())).to.equal('broken');
    expect(harness.server.seen).to.have.length(1);
  });

  it('succeeds after the server has closed all kept-alive connections', async () => {
    harness.connect(inTurn(OK));
    await harness.get();
    harness.server.resetConnections();
    await harness.server.until(() => harness.server.liveConnections === 0);
    expect(await harness.get()).to.deep.equal({ ok: true });
  });

  it('retries a write once if no connection is possible, and reports that it was not sent', async () => {
    let restart = () => Promise.resolve();
    harness.connect(inTurn(OK), { clock: { ...systemClock, sleep: () => restart() } });
    await harness.server.stop();
    try {
      expect(await faultOf(harness.post())).to.equal('unsent');
      restart = () => harness.server.restart();
      expect(await harness.post()).to.deep.equal({ ok: true });
    } finally {
      await harness.server.restart();
    }
  });

  it('rejects a server with a wrong certificate before it sends a byte', async () => {
    const tls = () => Promise.resolve({ rejectUnauthorized: true });
    harness.connect(inTurn(OK), {}, { ...harness.server.credentials(), tls });
    expect(await faultOf(harness.get())).to.equal('unsent');
    expect(harness.server.seen).to.have.length(0);
  });

  it('waits for Retry-After after 429 and 503', async () => {
    harness.connect(
      inTurn(
        { status: 429, headers: { 'retry-after': '0.05' }, body: status(429, 'TooManyRequests') },
        { status: 503, headers: { 'retry-after': '0.05' }, body: status(503, 'ServiceUnavailable') },
        OK,
      ),
    );
    const started = Date.now();
    expect(await harness.get()).to.deep.equal({ ok: true });
    expect(Date.now() - started).to.be.at.least(95);
  });

  for (const seconds of ['0', '']) {
    it(`sends few requests to a server that always answers 429 with Retry-After "${seconds}"`, async () => {
      harness.connect(inTurn({ status: 429, headers: { 'retry-after': seconds } }));
      expect(await faultOf(harness.get(500))).to.equal('429');
      expect(harness.server.seen.length).to.be.at.most(5);
    });
  }

  it('does not wait for a Retry-After beyond its deadline, but throws', async () => {
    harness.connect(inTurn({ status: 429, headers: { 'retry-after': '60' }, body: status(429, 'TooManyRequests') }));
    const error = await requestErrorOf(harness.get());
    expect(error).to.include({ status: 429, retryAfterMs: 60_000 });
    expect(harness.server.seen).to.have.length(1);
  });

  it('retries a write after 429 but not after 503', async () => {
    harness.connect(inTurn({ status: 429, headers: { 'retry-after': '0' } }, OK));
    expect(await harness.post()).to.deep.equal({ ok: true });
    harness.server.reset();
    harness.server.handle(inTurn({ status: 503, headers: { 'retry-after': '0' } }, OK));
    expect(await faultOf(harness.post())).to.equal('503');
  });

  it('rejects a response that is not JSON', async () => {
    harness.connect(inTurn({ body: '<html>' }));
    expect(await faultOf(harness.get())).to.equal('malformed');
  });

  it('reads the last bytes of an answer that is not JSON, and says whether there were more', async () => {
    harness.connect(inTurn({ body: 'line 1\nline 2\n' }));
    const read = (maxBytes: number) => harness.transport.text({ method: 'GET', path: '/log' }, maxBytes);
    expect(await read(14)).to.deep.equal({ text: 'line 1\nline 2\n', isCut: false });
    for (const [maxBytes, text] of [
      [7, 'line 2\n'],
      [6, 'ine 2\n'],
    ] as const)
      expect(await read(maxBytes)).to.deep.equal({ text, isCut: true });
    expect(harness.server.seen[0]!.headers.accept).to.equal('*/*');
  });

  it('counts and times every HTTP request', async () => {
    const counted: string[] = [];
    const metrics = { ...silentMetrics };
    metrics.requested = (method, code) => counted.push(`${method} ${code}`);
    harness.connect(inTurn(OK, { status: 404 }), { metrics });
    await harness.get();
    await faultOf(harness.post());
    expect(counted).to.deep.equal(['GET 200', 'POST 404']);
  });

  it('aborts running requests when it is closed', async () => {
    harness.connect(inTurn({ silent: true }));
    const running = faultOf(harness.post());
    await harness.server.until(() => harness.server.seen.length === 1);
    await harness.transport.close();
    expect(await running).to.equal('broken');
    await harness.server.until(() => harness.server.liveConnections === 0);
  });
});
