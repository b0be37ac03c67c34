import { expect } from 'chai';
import { StatusError } from '../kube/errors.js';
import { createLogger } from './log.js';

function recorder() {
  const lines: Record<string, unknown>[] = [];
  return { lines, write: (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>) };
}

describe('createLogger', () => {
  it('writes one JSON object per line, with time, level in words and process', () => {
    const target = recorder();
    createLogger('info', 'webhook', target).child({ part: 'server' }).warn({ port: 1 }, 'listening');
    expect(target.lines).to.have.length(1);
    expect(target.lines[0]).to.include({
      level: 'warn',
      process: 'webhook',
      part: 'server',
      port: 1,
      msg: 'listening',
    });
    expect(target.lines[0]?.time).to.match(/^\d{4}-\d\d-\d\dT.*Z$/);
  });

  it('omits messages below the level', () => {
    const target = recorder();
    const log = createLogger('warn', 'controller', target);
    log.debug({}, 'a');
    log.info({}, 'b');
    log.error({}, 'c');
    expect(target.lines.map((line) => line.msg)).to.deep.equal(['c']);
  });

  it('limits the length of the message and of the texts of an error', () => {
    const target = recorder();
    const long = 'x'.repeat(1_000_000);
    createLogger('info', 'controller', target).warn({ err: new Error(long, { cause: new Error(long) }) }, long);
    expect(JSON.stringify(target.lines[0]).length).to.be.below(20_000);
  });

  it('limits the length of all other texts: those of fields, and of the details of an answer of the API server', () => {
    const target = recorder();
    const long = 'x'.repeat(1_000_000);
    const err = new StatusError({
      ...{ request: 'PATCH /apis/x', status: 422, reason: 'Invalid', message: long },
      details: { causes: [{ field: 'spec.x', message: long }] },
    });
    const log = createLogger('info', 'controller', target).child({ part: long });
    log.warn({ err, reason: long, changes: { networks: [long] } }, 'sync failed');
    expect(JSON.stringify(target.lines[0]).length).to.be.below(7 * 4_200);
    expect(target.lines[0]).to.include({ reason: `${'x'.repeat(4_096)}…`, msg: 'sync failed' });
  });

  it('writes a thrown value that is not an error without changes', () => {
    const target = recorder();
    const log = createLogger('info', 'controller', target);
    for (const err of ['no', null, 7]) log.error({ err }, 'failed');
    expect(target.lines.map(({ err }) => err)).to.deep.equal(['no', null, 7]);
  });

  it('writes an error with its stack and its cause', () => {
    const target = recorder();
    const err = new Error('no', { cause: new Error('because') });
    createLogger('info', 'controller', target).error({ err }, 'failed');
    expect(JSON.stringify(target.lines[0]?.err)).to.include('no').and.to.include('because').and.to.include('log.test');
  });
});
