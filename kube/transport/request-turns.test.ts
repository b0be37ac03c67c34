import { expect } from 'chai';
import { systemClock } from '../clock.js';
import { faultOf } from '../../test/request-error.js';
import type { Reply } from '../../test/https/fault-server.js';
import { OK, TransportHarness } from '../../test/https/transport-harness.js';

describe('The requests of a transport', () => {
  const harness = new TransportHarness();
  /** Answers of requests that the server has received, oldest first. */
  let answers: (() => void)[];
  let requests: Promise<unknown>[];
  let onRequest: () => void;
  /** For how long the process was stopped: its timers have not run yet. */
  let pausedMs: number;

  beforeEach(() => (pausedMs = 0));

  function connect(connections: number): void {
    answers = [];
    requests = [];
    onRequest = () => undefined;
    const handler = () => {
      const answer = new Promise<Reply>((resolve) => answers.push(() => resolve(OK)));
      onRequest();
      return answer;
    };
    harness.connect(handler, { connections, clock: { ...systemClock, now: () => systemClock.now() + pausedMs } });
  }

  /** @param paths the namespace of each is its first letter */
  function send(...paths: string[]): void {
    for (const path of paths) requests.push(request(`/api/v1/namespaces/${path.charAt(0)}/${path}`));
  }

  function request(
    path: string,
    more: { tenant?: string; signal?: AbortSignal; deadlineMs?: number } = {},
  ): Promise<unknown> {
    return harness.transport.request({ method: 'POST', path, ...more });
  }

  const seen = () => harness.server.seen.map(({ path }) => path.split('/').at(-1));

  async function until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => (onRequest = resolve));
  }

  /** Answers all requests, each when the server has received it. */
  async function finish(): Promise<void> {
    for (let left = requests.length; left > 0; left--) {
      await until(() => answers.length > 0);
      answers.shift()!();
    }
    await Promise.all(requests);
  }

  it('start at once if those of another namespace wait', async () => {
    connect(4);
    send(...Array.from({ length: 20 }, (_, n) => `a${n}`), 'b0');
    await until(() => seen().includes('b0'));
    expect(seen()).to.have.members(['a0', 'a1', 'b0']);
    await finish();
  });

  it('take turns by namespace', async () => {
    connect(1);
    send('a0', 'a1', 'a2', 'b0', 'c0', 'b1');
    await finish();
    expect(seen()).to.deep.equal(['a0', 'a1', 'b0', 'c0', 'a2', 'b1']);
  });

  it('take the turn of the tenant that they name if they are for an object without a namespace', async () => {
    connect(1);
    for (const name of ['a0', 'a1', 'a2', 'b0'])
      requests.push(request(`/apis/x/v1/leases/${name}`, { tenant: name.charAt(0) }));
    await finish();
    expect(seen()).to.deep.equal(['a0', 'a1', 'b0', 'a2']);
  });

  it('are known to be unsent if their time is over before their turn', async () => {
    connect(1);
    send('a0');
    await until(() => seen().length === 1);
    expect(await faultOf(request('/api/v1/namespaces/a/a1', { deadlineMs: 20 }))).to.equal('unsent');
    send('a2');
    await finish();
    expect(seen()).to.deep.equal(['a0', 'a2']);
  });

  it('are not sent if their caller aborts before their turn', async () => {
    connect(1);
    const caller = new AbortController();
    send('a0');
    const aborted = faultOf(request('/api/v1/namespaces/a/a1', { signal: caller.signal }));
    await until(() => seen().length === 1);
    caller.abort();
    expect(await aborted).to.equal('aborted');
    send('a2');
    await finish();
    expect(seen()).to.deep.equal(['a0', 'a2']);
  });

  it('are not sent after their time, if the process was stopped while they waited', async () => {
    connect(1);
    send('a1');
    const late = faultOf(request('/api/v1/namespaces/a/a2'));
    await until(() => answers.length > 0);
    pausedMs = 30_000;
    await finish();
    expect(await late).to.equal('unsent');
    expect(seen()).to.deep.equal(['a1']);
  });
});
