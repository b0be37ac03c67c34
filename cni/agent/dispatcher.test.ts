import { expect } from 'chai';
import fc from 'fast-check';
import { silentLogger } from '../../kube/log.js';
import { StatusError, TransportError } from '../../kube/errors.js';
import { Metrics } from '../../process/metrics.js';
import { pluginRequest } from '../testing/cni-requests.js';
import { ManualClock } from '../../test/manual-clock.js';
import { CniCode, CniError } from './cni-error.js';
import { Dispatcher } from './dispatcher.js';
import { createAgentMetrics } from './metrics.js';
import { type InterfaceRef, CNI_COMMANDS, sandboxInterfaceKey } from './request.js';
import type { PluginResponse } from './result.js';
import type { Verbs } from './verbs.js';

const NEVER = new AbortController().signal;
const turn = () => new Promise<void>((resolve) => setImmediate(resolve));
const AWAY = new TransportError('unsent', 'GET /x: refused');
const FORBIDDEN = new StatusError({ request: 'GET /x', status: 403, reason: 'Forbidden', message: 'no' });

class Front {
  readonly clock = new ManualClock(0);
  readonly metrics = new Metrics();
  readonly notes = new Set<string>();
  areNotesFull = false;
  noted = 0;
  noteFails: Error | undefined;
  perform: Verbs['perform'] = () => Promise.resolve({ result: { done: true } });
  delete: Verbs['delete'] = () => Promise.resolve();
  readonly dispatcher = new Dispatcher({
    verbs: { perform: (request, call) => this.perform(request, call), delete: (at, call) => this.delete(at, call) },
    pendingDeletes: {
      has: (at) => this.notes.has(sandboxInterfaceKey(at)),
      write: async (at) => {
        await turn();
        if (this.noteFails !== undefined) throw this.noteFails;
        if (this.areNotesFull) return false;
        this.notes.add(sandboxInterfaceKey(at));
        return true;
      },
    },
    onPendingDelete: () => this.noted++,
    workers: 2,
    addTimeoutMs: 5_000,
    clock: this.clock,
    log: silentLogger,
    metrics: createAgentMetrics(this.metrics),
  });

  ask(command: string, env: Record<string, string | undefined> = {}, caller = NEVER): Promise<PluginResponse> {
    return this.dispatcher.answer(JSON.stringify(pluginRequest(command, env)), caller);
  }
}

function errorIn({ exit, output }: PluginResponse): { code: number; msg: string; cniVersion: string } {
  expect(exit).to.equal(1);
  return JSON.parse(output) as { code: number; msg: string; cniVersion: string };
}

describe('the request dispatcher', () => {
  let front: Front;

  beforeEach(() => {
    front = new Front();
  });

  it('returns the result of a verb and the rules of its port, or empty output if it has none', async () => {
    expect(await front.ask('ADD')).to.deep.equal({ exit: 0, output: '{"done":true}' });
    const subject = { namespace: 'vms', pod: 'p1', interfaceName: 'net1', pool: 'blue' };
    const guard = { mode: 'Enforce', sets: [], chains: [], subject, isGuest: true } as const;
    front.perform = () => Promise.resolve({ result: {}, guard });
    expect(await front.ask('ADD')).to.deep.equal({ exit: 0, output: '{}', guard });
    front.perform = () => Promise.resolve({});
    expect(await front.ask('CHECK', { CNI_COMMAND: 'DEL' })).to.deep.equal({ exit: 0, output: '' });
  });

  const failures: [name: string, error: Error, code: number, says: string][] = [
    ['a CniError', new CniError(CniCode.Refused, 'no'), 100, 'no'],
    ['an API server that is not available', AWAY, 11, 'API server is not available'],
    ['an API server that refuses the request', FORBIDDEN, 11, '403'],
    ['an internal error', new TypeError('x is not a function'), 999, 'see the log of the agent'],
  ];
  for (const [name, error, code, says] of failures) {
    it(`answers ${name} with code ${code}, in the version of the request`, async () => {
      front.perform = () => Promise.reject(error);
      const answer = errorIn(await front.ask('ADD'));
      expect(answer).to.include({ code, cniVersion: '1.0.0' });
      expect(answer.msg).to.include(says);
    });
  }

  it('fails an ADD with code 11 at its deadline', async () => {
    front.perform = (_request, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new TransportError('aborted', 'GET /x: given up'))),
      );
    const answer = front.ask('ADD');
    await turn();
    front.clock.advanceTo(4_999);
    front.clock.advanceTo(5_000);
    expect(errorIn(await answer)).to.include({ code: 11 });
    expect(errorIn(await answer).msg).to.equal(
      'the agent did not finish the request within 5000 ms; see its log: the kubelet retries',
    );
  });

  it('prefers the error message of the cancelled work over its own', async () => {
    front.perform = async (_request, { signal }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      await turn();
      throw new CniError(CniCode.TryAgain, 'claim vm1.data has no addresses yet');
    };
    const answer = front.ask('ADD');
    await turn();
    front.clock.advanceTo(5_000);
    expect(errorIn(await answer).msg).to.equal('claim vm1.data has no addresses yet');
  });

  it('answers in place of work that ignores the abort, which keeps its place in the queue', async () => {
    let end: () => void = () => undefined;
    const seen: string[] = [];
    front.perform = ({ command }) => {
      seen.push(command);
      return new Promise((resolve) => (end = () => resolve({})));
    };
    const answer = front.ask('ADD');
    await turn();
    front.clock.advanceTo(5_000);
    await turn();
    front.clock.advanceTo(6_000);
    expect(errorIn(await answer)).to.include({ code: 11 });
    const next = front.ask('DEL');
    await turn();
    expect(seen).to.deep.equal(['ADD']);
    end();
    await turn();
    expect(seen).to.deep.equal(['ADD', 'DEL']);
    end();
    expect(await next).to.deep.equal({ exit: 0, output: '' });
  });

  it('runs one request of an interface at a time, and requests of other interfaces in parallel', async () => {
    const seen: string[] = [];
    const ends: (() => void)[] = [];
    front.perform = (request) => {
      seen.push(sandboxInterfaceKey(request as InterfaceRef));
      return new Promise((resolve) => ends.push(() => resolve({})));
    };
    const answers = [front.ask('ADD'), front.ask('DEL'), front.ask('ADD', { CNI_IFNAME: 'net2' })];
    await turn();
    expect(seen).to.deep.equal(['c1 net1', 'c1 net2']);
    ends[0]!();
    await turn();
    expect(seen).to.deep.equal(['c1 net1', 'c1 net2', 'c1 net1']);
    for (const end of ends) end();
    await Promise.all(answers);
  });

  describe('a failed DEL', () => {
    for (const error of [AWAY, new TypeError('x is not a function'), new CniError(CniCode.TryAgain, 'later')]) {
      it(`succeeds and becomes a pending delete after ${error.name}`, async () => {
        front.perform = () => Promise.reject(error);
        expect(await front.ask('DEL')).to.deep.equal({ exit: 0, output: '' });
        expect([...front.notes]).to.deep.equal(['c1 net1']);
        expect(front.noted).to.equal(1);
      });
    }

    it('becomes a pending delete after 10 s, and if its caller has disconnected', async () => {
      front.perform = () => new Promise(() => undefined);
      const answer = front.ask('DEL');
      await turn();
      front.clock.advanceTo(10_000);
      await turn();
      front.clock.advanceTo(11_000);
      expect(await answer).to.deep.equal({ exit: 0, output: '' });
      expect([...front.notes]).to.deep.equal(['c1 net1']);
      const gone = new AbortController();
      gone.abort();
      await front.ask('DEL', { CNI_IFNAME: 'net2' }, gone.signal);
      expect([...front.notes]).to.deep.equal(['c1 net1', 'c1 net2']);
    });

    it('becomes a pending delete before the next request for the interface begins', async () => {
      const seen: string[] = [];
      front.perform = ({ command }) => {
        seen.push(`${command}, pending: ${[...front.notes].join()}`);
        return command === 'DEL' ? Promise.reject(AWAY) : Promise.resolve({});
      };
      await Promise.all([front.ask('DEL'), front.ask('ADD')]);
      expect(seen).to.deep.equal(['DEL, pending: ', 'ADD, pending: c1 net1']);
    });

    it('becomes a pending delete before the next request for the interface begins, also if it had no turn', async () => {
      const seen: string[] = [];
      const gone = new AbortController();
      let end: () => void = () => undefined;
      front.perform = ({ command }) => {
        seen.push(`${command}, pending: ${[...front.notes].join()}`);
        return seen.length > 1 ? Promise.resolve({}) : new Promise((resolve) => (end = () => resolve({})));
      };
      const answers = [front.ask('ADD'), front.ask('DEL', {}, gone.signal), front.ask('ADD')];
      await turn();
      gone.abort();
      end();
      await Promise.all(answers);
      expect(seen).to.deep.equal(['ADD, pending: ', 'ADD, pending: c1 net1']);
    });

    it('succeeds without a pending delete if there are too many', async () => {
      front.perform = () => Promise.reject(AWAY);
      front.areNotesFull = true;
      expect(await front.ask('DEL')).to.deep.equal({ exit: 0, output: '' });
      expect(front.noted).to.equal(0);
    });

    it('fails with code 11 only if the pending delete cannot be stored either', async () => {
      front.perform = () => Promise.reject(AWAY);
      front.noteFails = new Error('no space left on device');
      const { code, msg } = errorIn(await front.ask('DEL'));
      expect(code).to.equal(11);
      expect(msg).to.include('refused').and.to.include('no space left');
      expect(front.noted).to.equal(0);
    });
  });

  it('carries out a pending delete in the queue of its interface, unless it was done meanwhile', async () => {
    const deleted: string[] = [];
    let end: () => void = () => undefined;
    front.perform = () => new Promise((resolve) => (end = () => resolve({})));
    front.delete = (at) => {
      deleted.push(sandboxInterfaceKey(at));
      return Promise.resolve();
    };
    const at = { containerId: 'c1', interfaceName: 'net1' };
    front.notes.add(sandboxInterfaceKey(at));
    const added = front.ask('ADD');
    const replayed = front.dispatcher.retryDelete({ name: 'x', target: at }, NEVER);
    await turn();
    expect(deleted).to.deep.equal([]);
    front.notes.clear();
    end();
    await Promise.all([added, replayed]);
    expect(deleted).to.deep.equal([]);
    front.notes.add(sandboxInterfaceKey(at));
    await front.dispatcher.retryDelete({ name: 'x', target: at }, NEVER);
    expect(deleted).to.deep.equal(['c1 net1']);
  });

  it('counts requests by command and error code', async () => {
    await front.ask('ADD');
    await front.ask('ADD', { CNI_IFNAME: '' });
    await front.dispatcher.answer('x', NEVER);
    const text = await front.metrics.registry.metrics();
    expect(text).to.include('holdfast_cni_request_duration_seconds_count{command="ADD",code="0"} 1');
    expect(text).to.include('holdfast_cni_request_duration_seconds_count{command="ADD",code="4"} 1');
    expect(text).to.include('holdfast_cni_request_duration_seconds_count{command="unknown",code="6"} 1');
    expect(text).to.include('holdfast_cni_requests_in_flight 0');
  });

  it('answers any input with JSON, and failures with a code', async () => {
    const key = fc.constantFrom('CNI_COMMAND', 'CNI_CONTAINERID', 'CNI_NETNS', 'CNI_IFNAME', 'CNI_ARGS', 'CNI_PATH');
    const args = 'K8S_POD_NAME=a;K8S_POD_NAMESPACE=b';
    const value = fc.oneof(fc.string(), fc.constantFrom(...CNI_COMMANDS, 'c1', 'net1', args));
    const keys = ['prevResult', 'runtimeConfig', 'args', 'cni.dev/valid-attachments', 'ipam', 'name', 'cniVersion'];
    const config = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc
        .dictionary(
          fc.constantFrom(...keys),
          fc.oneof(fc.jsonValue(), fc.constantFrom({ ips: [{ address: '1.2.3.4/8' }] }, { type: 'holdfast' }, '1.1.0')),
        )
        .map((keys) => JSON.stringify({ cniVersion: '1.1.0', name: 'blue', ipam: { type: 'holdfast' }, ...keys })),
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.json(),
      fc.record({ env: fc.dictionary(key, value), config }).map((ask) => JSON.stringify(ask)),
      fc
        .record({ command: fc.constantFrom(...CNI_COMMANDS), env: fc.dictionary(key, value), config })
        .map(({ command, env, config }) => JSON.stringify({ env: { ...pluginRequest(command).env, ...env }, config })),
    );
    await fc.assert(
      fc.asyncProperty(text, async (bytes) => {
        const { exit, output } = await front.dispatcher.answer(bytes, NEVER);
        if (exit === 0) {
          expect(output).to.be.oneOf(['', '{"done":true}']);
        } else {
          const { code, msg, cniVersion } = errorIn({ exit, output });
          expect(code).to.be.oneOf([1, 4, 6, 7]);
          expect(msg).to.be.a('string').that.is.not.empty;
          expect(cniVersion).to.be.a('string').that.is.not.empty;
        }
      }),
      { numRuns: 1000 },
    );
  });
});
