import { expect } from 'chai';
import { inTurn, status } from '../test/https/fault-server.js';
import { systemClock } from './clock.js';
import { type StatusError, TransportError } from './errors.js';
import { OK, TransportHarness } from '../test/https/transport-harness.js';

describe('Transport.stream', () => {
  const harness = new TransportHarness();

  async function collect(options: { idleMs?: number; signal?: AbortSignal; onValue?: () => void } = {}) {
    const { idleMs = 5000, signal = new AbortController().signal, onValue } = options;
    const values: unknown[] = [];
    let fault = 'end';
    try {
      for await (const value of harness.transport.stream({ path: '/w', query: { watch: true }, signal, idleMs })) {
        values.push(value);
        onValue?.();
      }
    } catch (error) {
      fault = error instanceof TransportError ? error.fault : String((error as StatusError).status);
    }
    return { values, fault };
  }

  it('yields the values and ends when the server ends the stream', async () => {
    harness.connect(inTurn({ lines: [1, { two: 2 }], then: 'end' }));
    expect(await collect()).to.deep.equal({ values: [1, { two: 2 }], fault: 'end' });
  });

  it('yields each value as soon as it arrives', async () => {
    harness.connect(inTurn({ lines: [1] }));
    let count = 0;
    const onValue = () => {
      if (++count < 3) harness.server.push(count + 1);
      else harness.server.endAnswers();
    };
    expect(await collect({ onValue })).to.deep.equal({ values: [1, 2, 3], fault: 'end' });
  });

  it('ends without an error when its caller aborts, and closes its connection', async () => {
    harness.connect(inTurn({ lines: [1] }));
    const caller = new AbortController();
    const result = await collect({ signal: caller.signal, onValue: () => caller.abort() });
    expect(result).to.deep.equal({ values: [1], fault: 'end' });
    await harness.server.until(() => harness.server.openAnswers === 0);
  });

  it('has a connection of its own, which is closed after it', async () => {
    harness.connect(inTurn({ lines: [1], then: 'end' }));
    await collect();
    expect(harness.server.seen[0]?.headers.connection).to.equal('close');
  });

  it('closes its connection when its reader stops iterating', async () => {
    harness.connect(inTurn({ lines: [1] }));
    const { signal } = new AbortController();
    for await (const value of harness.transport.stream({ path: '/w', query: {}, signal, idleMs: 5000 })) {
      expect(value).to.equal(1);
      break;
    }
    await harness.server.until(() => harness.server.openAnswers === 0);
  });

  it('fails if a connection sends no data for too long', async () => {
    harness.connect(inTurn({ lines: [1] }));
    expect(await collect({ idleMs: 100 })).to.deep.equal({ values: [1], fault: 'idle' });
  });

  it('does not fail while a connection keeps sending', async () => {
    harness.connect(inTurn({ lines: [0] }));
    let count = 0;
    const onValue = () => {
      if (++count < 8) setTimeout(() => harness.server.push(count), 50);
      else harness.server.endAnswers();
    };
    expect((await collect({ idleMs: 300, onValue })).fault).to.equal('end');
    expect(count).to.equal(8);
  });

  it('waits for the first byte no longer than the deadline of requests', async () => {
    harness.connect(inTurn({ silent: true }), { deadlineMs: 100 });
    expect((await collect()).fault).to.equal('deadline');
  });

  it('reports a broken connection after a reset', async () => {
    harness.connect(inTurn({ lines: [1], then: 'reset' }));
    expect(await collect()).to.deep.equal({ values: [1], fault: 'broken' });
  });

  it('fails at garbage after valid values', async () => {
    harness.connect(inTurn({ lines: [1, '\u0000\u0001garbage\n'] }));
    expect(await collect()).to.deep.equal({ values: [1], fault: 'malformed' });
  });

  it("throws the server's error, and refreshes credentials like a request", async () => {
    harness.connect(inTurn({ status: 410, body: status(410, 'Expired') }));
    expect((await collect()).fault).to.equal('410');
    harness.server.reset();
    harness.server.handle(inTurn({ status: 401 }, { lines: [1], then: 'end' }));
    expect(await collect()).to.deep.equal({ values: [1], fault: 'end' });
  });

  it('does not use the connections of requests', async () => {
    harness.connect((request) => (request.path === '/w' ? { lines: [1] } : OK), { connections: 1 });
    const caller = new AbortController();
    const streams = Array.from({ length: 5 }, () => collect({ signal: caller.signal }));
    await harness.server.until(() => harness.server.openAnswers === 5);
    expect(await harness.transport.request({ method: 'GET', path: '/x' })).to.deep.equal({ ok: true });
    caller.abort();
    await Promise.all(streams);
  });

  it('resumes the TLS session of an earlier request on its new connection', async () => {
    harness.connect((request) => (request.path === '/w' ? { lines: [1], then: 'end' } : OK));
    await harness.transport.request({ method: 'GET', path: '/x' });
    expect(await collect()).to.deep.equal({ values: [1], fault: 'end' });
    expect(harness.server).to.include({ connections: 2, resumed: 1 });
  });
});

describe('Transport.chunks', () => {
  const harness = new TransportHarness();
  const open = (signal: AbortSignal) => harness.transport.chunks({ path: '/log', signal, idleMs: 5000 });

  it('yields the bytes of an answer that is not JSON', async () => {
    harness.connect(inTurn({ body: 'line 1\nline 2\n' }));
    const chunks: Buffer[] = [];
    for await (const chunk of open(new AbortController().signal)) chunks.push(chunk);
    expect(Buffer.concat(chunks).toString()).to.equal('line 1\nline 2\n');
    expect(harness.server.seen[0]?.headers.accept).to.equal('*/*');
  });

  it('ends without an error when its caller aborts, and closes its connection', async () => {
    harness.connect(inTurn({ body: 'line 1\n', then: 'open' }));
    const caller = new AbortController();
    for await (const chunk of open(caller.signal)) {
      expect(chunk.toString()).to.equal('line 1\n');
      caller.abort();
    }
    await harness.server.until(() => harness.server.openAnswers === 0);
  });

  it('has no time limit while its caller uses a chunk', async () => {
    const limits = new Set<object>();
    const setTimer = () => {
      const limit = {};
      limits.add(limit);
      return () => void limits.delete(limit);
    };
    harness.connect(inTurn({ body: 'line 1\n', then: 'open' }), { clock: { ...systemClock, setTimer } });
    const chunks = open(new AbortController().signal);
    await chunks.next();
    expect(limits.size).to.equal(0);
    const next = chunks.next();
    expect(limits.size).to.equal(1);
    harness.server.endAnswers();
    expect((await next).done).to.equal(true);
    expect(limits.size).to.equal(0);
  });
});
