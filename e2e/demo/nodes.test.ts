import { expect } from 'chai';
import { Narrator } from './narrator.js';
import { runOnRealNodes } from './nodes.js';

describe('The nodes of the demo', () => {
  const before = process.env.NODES;
  afterEach(() => {
    if (before === undefined) delete process.env.NODES;
    else process.env.NODES = before;
  });

  const run = (nodes: string) => {
    process.env.NODES = nodes;
    return runOnRealNodes('no-program', new Narrator()).catch((error: unknown) => error);
  };

  it('are simulated if that is asked for', async () => {
    expect(await run('simulated')).to.equal(undefined);
  });

  it('are of no other kind', async () => {
    expect(String(await run('kubevirt'))).to.equal('TypeError: NODES=kubevirt: the demo has real and simulated nodes');
  });
});
