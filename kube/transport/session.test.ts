import { expect } from 'chai';
import { type Handler, type Reply, inTurn, status } from '../../test/https/fault-server.js';
import { faultOf, requestErrorOf } from '../../test/request-error.js';
import { systemClock } from '../clock.js';
import { OK, TransportHarness } from '../../test/https/transport-harness.js';

describe('the credentials of a transport', () => {
  const harness = new TransportHarness();
  const requireNewToken: Handler = ({ headers }) => (headers.authorization === 'Bearer new' ? OK : { status: 401 });

  it('are refreshed after a 401, and the request is retried, also a write', async () => {
    const credentials = harness.server.credentials(['old', 'new']);
    harness.connect(requireNewToken, {}, credentials);
    expect(await harness.post()).to.deep.equal({ ok: true });
    expect(credentials.refreshed).to.equal(1);
  });

  it('are refreshed once if many requests are rejected at the same time', async () => {
    const credentials = harness.server.credentials(['old', 'new']);
    harness.connect(requireNewToken, {}, credentials);
    await Promise.all(Array.from({ length: 50 }, () => harness.get()));
    expect(credentials.refreshed).to.equal(1);
  });

  it('are not refreshed endlessly if the server rejects all of them', async () => {
    const credentials = harness.server.credentials(['a', 'b', 'c', 'd']);
    harness.connect(inTurn({ status: 401, body: status(401, 'Unauthorized') }), {}, credentials);
    for (let count = 0; count < 10; count++) expect(await faultOf(harness.get())).to.equal('401');
    expect(credentials.refreshed).to.equal(1);
  });

  it('are read again after a minute, without new connections if the certificates are the same', async () => {
    let now = 0;
    let reads = 0;
    const given = harness.server.credentials();
    const credentials = { ...given, headers: () => Promise.resolve({ authorization: `Bearer ${++reads}` }) };
    harness.connect(inTurn(OK), { connections: 1, clock: { ...systemClock, now: () => now } }, credentials);
    for (now of [0, 59_999, 60_000, 119_000]) await harness.get();
    const sent = harness.server.seen.map((seen) => seen.headers.authorization);
    expect(sent).to.deep.equal(['Bearer 1', 'Bearer 1', 'Bearer 2', 'Bearer 2']);
    expect(harness.server.connections).to.equal(1);
  });

  it('get new connections and TLS sessions with a new certificate, without breaking running requests', async () => {
    const given = harness.server.credentials();
    let ca = 'no certificate yet';
    const credentials = { ...given, tls: () => Promise.resolve({ ca: `${ca}\n`, rejectUnauthorized: true }) };
    let now = 0;
    ca = harness.server.certificate.ca;
    const clock = { ...systemClock, now: () => now };
    harness.connect(inTurn({ ...OK, delayMs: 100 }, OK), { connections: 1, clock }, credentials);
    const running = harness.get();
    await harness.server.until(() => harness.server.seen.length === 1);
    ca = `${harness.server.certificate.ca}\n# renewed`;
    now = 60_000;
    expect(await harness.get()).to.deep.equal({ ok: true });
    expect(await running).to.deep.equal({ ok: true });
    expect(harness.server).to.include({ connections: 2, resumed: 0 });
  });

  it('get new connections with a new certificate, also for a write that waited for its turn', async () => {
    const given = harness.server.credentials();
    let { ca } = harness.server.certificate;
    const credentials = { ...given, tls: () => Promise.resolve({ ca, rejectUnauthorized: true }) };
    let now = 0;
    let answer: (reply: Reply) => void = () => undefined;
    const held = new Promise<Reply>((resolve) => (answer = resolve));
    const clock = { ...systemClock, now: () => now };
    const arrived = new Promise<void>((resolve) => {
      const handler: Handler = ({ path }) => (path.endsWith('/first') ? (resolve(), held) : OK);
      harness.connect(handler, { connections: 2, clock, deadlineMs: 100_000 }, credentials);
    });
    const post = (path: string) =>
      harness.transport.request({ method: 'POST', path: `/api/v1/namespaces/${path}`, body: {} });
    const first = post('a/things/first');
    await arrived;
    const waiting = post('a/things/second');
    ca = `${ca}\n# renewed`;
    now = 60_000;
    await post('b/things/third');
    answer(OK);
    expect(await Promise.all([first, waiting])).to.deep.equal([{ ok: true }, { ok: true }]);
  });

  it('cause an error of the request if they cannot be loaded', async () => {
    const broken = { ...harness.server.credentials(), headers: () => Promise.reject(new Error('no token file')) };
    harness.connect(inTurn(OK), {}, broken);
    const error = await requestErrorOf(harness.get());
    expect(error.message).to.equal('GET /x: cannot load credentials: no token file');
  });

  it('do not delay a request beyond its deadline if loading hangs', async () => {
    harness.connect(inTurn(OK), {}, { ...harness.server.credentials(), headers: () => new Promise(() => undefined) });
    expect(await faultOf(harness.get(50))).to.equal('deadline');
  });

  it('are requested again if loading takes more than half a minute', async () => {
    let now = 0;
    let asked = 0;
    const loaded = Promise.resolve({ authorization: 'Bearer x' });
    const headers = () => (++asked === 1 ? new Promise<never>(() => undefined) : loaded);
    const clock = { ...systemClock, now: () => now };
    harness.connect(inTurn(OK), { clock }, { ...harness.server.credentials(), headers });
    expect(await faultOf(harness.get(50))).to.equal('deadline');
    expect(await faultOf(harness.get(50))).to.equal('deadline');
    now = 30_000;
    expect(await harness.get()).to.deep.equal({ ok: true });
    expect(asked).to.equal(2);
  });

  it("cause the server's error to be thrown if they cannot be renewed", async () => {
    const refresh = () => Promise.reject(new Error('plugin failed'));
    const unauthorized = inTurn({ status: 401, body: status(401, 'Unauthorized') });
    harness.connect(unauthorized, {}, { ...harness.server.credentials(), refresh });
    expect(await faultOf(harness.get())).to.equal('401');
  });
});
