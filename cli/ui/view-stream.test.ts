import type { Response } from 'express';
import { EventEmitter } from 'node:events';
import { expect } from 'chai';
import { ManualClock } from '../../test/manual-clock.js';
import type { PoolsView, ServerView } from './protocol.js';
import { ViewStreams } from './view-stream.js';

/** A browser that reads only when it is told to. */
class SlowResponse extends EventEmitter {
  readonly written: string[] = [];
  isFull = false;

  writeHead(): void {
    // the status is not looked at
  }

  write(text: string): boolean {
    this.written.push(text);
    return !this.isFull;
  }

  destroy(): void {
    this.emit('close');
  }
}

describe('The streams of the web page', () => {
  let clock: ManualClock;
  let streams: ViewStreams;
  let response: SlowResponse;
  let total: number;

  beforeEach(() => {
    clock = new ManualClock(0);
    streams = new ViewStreams(clock, 2);
    response = new SlowResponse();
    total = 0;
  });

  const view = (): ServerView =>
    ({ view: 'pools', parts: [], alerts: [], times: [], pools: { rows: [], total } }) satisfies PoolsView & ServerView;
  const pass = (ms: number) => clock.advanceTo(clock.now() + ms);
  const open = () => streams.open(response as unknown as Response, view);

  it('collect changes, and send one patch for all of them', () => {
    open();
    for (total of [1, 2, 3]) streams.changed();
    expect(response.written).to.have.length(1);
    pass(250);
    expect(response.written.slice(1)).to.deep.equal([
      'event: patch\ndata: [{"op":"replace","path":"/pools/total","value":3}]\n\n',
    ]);
  });

  it('send nothing if nothing that is shown has changed', () => {
    open();
    streams.changed();
    pass(250);
    expect(response.written).to.have.length(1);
  });

  it('queue nothing for a browser that does not read, and then send it the newest state', () => {
    response.isFull = true;
    open();
    for (let n = 1; n <= 100; n += 1) {
      total = n;
      streams.changed();
      pass(250);
    }
    expect(response.written).to.have.length(1);
    response.isFull = false;
    response.emit('drain');
    pass(250);
    expect(response.written.slice(1)).to.deep.equal([
      'event: patch\ndata: [{"op":"replace","path":"/pools/total","value":100}]\n\n',
    ]);
  });

  it('pause ten times as long as building a view took, for each open one', () => {
    let isSlow = false;
    const slow = () => {
      if (isSlow) pass(1_000);
      return view();
    };
    streams.open(response as unknown as Response, slow);
    streams.open(new SlowResponse() as unknown as Response, view);
    isSlow = true;
    streams.changed();
    pass(250);
    isSlow = false;
    expect(response.written, 'nothing has changed').to.have.length(1);
    total = 1;
    streams.changed();
    pass(19_999);
    const patches = () => response.written.filter((text) => text.startsWith('event: patch'));
    expect(patches()).to.deep.equal([]);
    pass(1);
    expect(patches()).to.have.length(1);
  });

  it('send a sign of life while nothing changes', () => {
    open();
    pass(10_000);
    pass(10_000);
    expect(response.written.slice(1)).to.deep.equal(['event: beat\ndata:\n\n', 'event: beat\ndata:\n\n']);
  });

  it('tell the page if a view cannot be built, and go on', () => {
    let isBroken = true;
    streams.open(response as unknown as Response, () => {
      if (isBroken) throw new TypeError('a field is missing');
      return view();
    });
    expect(response.written).to.deep.equal(['event: failure\ndata: "a field is missing"\n\n']);
    isBroken = false;
    streams.changed();
    pass(250);
    expect(response.written.at(-1)).to.match(/^event: snapshot/);
  });

  it('are bounded, and free when their connection is closed', () => {
    open();
    open();
    expect(streams.isFull).to.equal(true);
    response.destroy();
    expect(streams.isFull).to.equal(false);
  });
});
