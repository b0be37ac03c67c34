import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect } from 'chai';
import { findFreePorts, withFreePorts } from './ports.js';

describe('Free ports', () => {
  it('are different and free', async () => {
    const ports = await findFreePorts(20);
    expect(new Set(ports).size).to.equal(20);
    const server = createServer().listen(ports[0], '127.0.0.1');
    await once(server, 'listening');
    await once(server.close(), 'close');
  });

  it('are never returned twice, because a process may not listen on its port yet', async () => {
    const ports = (await Promise.all(Array.from({ length: 40 }, () => findFreePorts(20)))).flat();
    expect(new Set(ports).size).to.equal(ports.length);
  });

  it('are searched again if another process was faster', async () => {
    const tried: number[] = [];
    const port = await withFreePorts(1, ([port]) => {
      tried.push(port!);
      return tried.length < 3 ? Promise.reject(new Error('listen: address already in use')) : Promise.resolve(port);
    });
    expect(tried).to.have.length(3);
    expect(port).to.equal(tried[2]);
  });

  it('are searched a limited number of times, and only for this reason', async () => {
    for (const [message, attempts] of [
      ['address already in use', 3],
      ['bad flag', 1],
    ] as const) {
      let tried = 0;
      const failure = await withFreePorts(1, () => {
        tried++;
        return Promise.reject(new Error(message));
      }).catch((error: unknown) => error);
      expect(failure).to.have.property('message', message);
      expect(tried).to.equal(attempts);
    }
  });
});
