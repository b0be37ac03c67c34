import { mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { type Server, type Socket, createConnection, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { silentLogger } from '../../kube/log.js';
import { systemClock } from '../../kube/clock.js';
import { ManualClock } from '../../test/manual-clock.js';
import type { PluginResponse } from './result.js';
import { SocketServer } from './server.js';

const ECHO = (text: string): Promise<PluginResponse> => Promise.resolve({ exit: 0, output: text });

describe('the socket of the agent', () => {
  let folder: string;
  let path: string;
  const servers: SocketServer[] = [];

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
    path = join(folder, 'run', 'agent.sock');
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.stop();
    await rm(folder, { recursive: true });
  });

  async function start(
    answer: (text: string, signal: AbortSignal) => Promise<PluginResponse> = ECHO,
    clock = systemClock,
  ): Promise<SocketServer> {
    const server = new SocketServer({ path, answer, clock, log: silentLogger });
    servers.push(server);
    await server.listen();
    return server;
  }

  /** Everything that the server sends until it closes the connection. */
  function ask(text: string | Buffer, options: { end?: boolean } = {}): Promise<string> {
    return new Promise((resolve, reject) => {
      const socket = createConnection(path, () => (options.end ? socket.end(text) : socket.write(text)));
      let got = '';
      socket.setEncoding('utf8').on('data', (chunk: string) => (got += chunk));
      // the agent does not read a refused request to its end
      socket.on('error', (error: NodeJS.ErrnoException) => (error.code === 'EPIPE' ? undefined : reject(error)));
      socket.on('close', () => resolve(got));
    });
  }

  const read = (text: string) => JSON.parse(text) as PluginResponse;
  const codeOf = (text: string) => (JSON.parse(read(text).output) as { code: number }).code;

  it('is accessible to root only, as is its folder', async () => {
    await start();
    expect((await stat(path)).mode & 0o777).to.equal(0o600);
    expect((await stat(join(path, '..'))).mode & 0o777).to.equal(0o700);
  });

  it('is a problem if it was removed or replaced, because no plugin reaches the agent then', async () => {
    const server = await start();
    expect(server.problem()).to.equal(undefined);
    await rm(path);
    expect(server.problem()).to.include(`${path} was removed or replaced`);
    await writeFile(path, '');
    expect(server.problem()).to.include(`${path} was removed or replaced`);
  });

  it('leaves the socket of another agent that replaced its own when it stops', async () => {
    const first = await start();
    await rm(path);
    const second = await start();
    expect(first.problem()).to.include(`${path} was removed or replaced`);
    const before = await stat(path, { bigint: true });
    await first.stop();
    // a name that goes away for a moment, and comes back, changes the time
    expect((await stat(path, { bigint: true })).ctimeNs).to.equal(before.ctimeNs);
    expect(second.problem()).to.equal(undefined);
    expect(read(await ask('{}\n')).output).to.equal('{}');
    expect(await readdir(join(folder, 'run'))).to.deep.equal(['agent.sock']);
  });

  it('answers a request that ends with a newline or with a half-closed connection', async () => {
    await start();
    expect(read(await ask('{"a":1}\n'))).to.deep.equal({ exit: 0, output: '{"a":1}' });
    expect(read(await ask('{\n}', { end: true })).output).to.equal('{');
    expect(read(await ask('{}', { end: true })).output).to.equal('{}');
    expect(read(await ask('{"b":2}\n', { end: true })).output).to.equal('{"b":2}');
  });

  it('reassembles a request that arrives in several chunks', async () => {
    await start();
    const text = `"${'ä'.repeat(100_000)}"`;
    expect(read(await ask(`${text}\n`)).output).to.equal(text);
  });

  it('refuses a request over 256 KiB with code 6, and the caller receives the error', async () => {
    await start(ECHO, new ManualClock(0)); // real time may pass LINGER_MS before a busy machine has sent this
    expect(codeOf(await ask(Buffer.alloc(8 * 1024 * 1024, 'x')))).to.equal(6);
  });

  it('refuses a request that stays incomplete with code 5', async () => {
    const clock = new ManualClock(0);
    await start(ECHO, clock);
    const answer = ask('{"half":');
    await clock.untilAlarmsSet();
    clock.advanceTo(10_000);
    expect(codeOf(await answer)).to.equal(5);
  });

  it('cancels a request when its caller has disconnected', async () => {
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const aborted = new Promise<string>((resolve) => {
      void start((_text, signal) => {
        signal.addEventListener('abort', () => resolve((signal.reason as Error).message));
        begin();
        return new Promise(() => undefined);
      }).then(() => {
        const socket: Socket = createConnection(path, () => socket.write('{}\n'));
        void begun.then(() => socket.destroy());
      });
    });
    expect(await aborted).to.equal('the caller closed the connection');
  });

  it('keeps working for a caller that has only half-closed the connection', async () => {
    let answer: (given: PluginResponse) => void = () => undefined;
    let isAborted = false;
    await start((text, signal) => {
      if (text === 'other') return ECHO(text);
      signal.addEventListener('abort', () => (isAborted = true));
      return new Promise((given) => (answer = given));
    });
    const got = ask('{}\n', { end: true });
    // after other requests were served, the agent has seen the half-close of the first one
    for (let others = 0; others < 3; others++) await ask('other\n');
    answer({ exit: 0, output: 'late' });
    expect(read(await got)).to.deep.equal({ exit: 0, output: 'late' });
    expect(isAborted).to.equal(false);
  });

  it('replaces the socket of an agent that has exited, and leaves no other file', async () => {
    await start();
    const dead = createServer();
    path = join(folder, 'run', 'dead.sock');
    await new Promise<void>((resolve) => dead.listen(path, resolve));
    // a killed process leaves the file without a listener
    await crash(dead, path);
    await start();
    expect(read(await ask('{}\n')).output).to.equal('{}');
    expect((await readdir(join(folder, 'run'))).sort()).to.deep.equal(['agent.sock', 'dead.sock']);
  });

  it('removes what agents left behind that were killed while they began to listen, and nothing else', async () => {
    const [left, old, used] = ['.0123abcd', '.99.old', '.89abcdef'].map((suffix) => `${path}${suffix}`);
    await mkdir(join(path, '..'), { recursive: true });
    for (const file of [left!, old!, `${path}.note`]) await writeFile(file, '');
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(used, resolve));
    await start();
    expect(await readdir(join(path, '..'))).to.have.members(['agent.sock', 'agent.sock.89abcdef', 'agent.sock.note']);
    other.close();
  });

  it('starts if nothing is at its path by the time it looks for the agent there', async () => {
    await mkdir(join(folder, 'run'));
    // a link to nothing keeps the path in use, as the socket of an agent does that stops just now
    await symlink(join(folder, 'gone'), path);
    await start();
    expect(read(await ask('{}\n')).output).to.equal('{}');
    expect(await readdir(join(folder, 'run'))).to.deep.equal(['agent.sock']);
  });

  it('refuses to start while another agent listens on the socket', async () => {
    await start((text) => Promise.resolve({ exit: 0, output: `first ${text}` }));
    const failure = await start().catch((error: unknown) => (error as Error).message);
    expect(failure).to.include('another agent listens').and.to.include(path).and.to.include('--run-dir');
    servers.pop();
    expect(read(await ask('{}\n')).output).to.equal('first {}');
    expect(await readdir(join(folder, 'run'))).to.deep.equal(['agent.sock']);
  });

  it('names the path if it cannot listen', async () => {
    await writeFile(join(folder, 'run'), '');
    const failure = await start().catch((error: unknown) => (error as Error).message);
    expect(failure).to.include(join(folder, 'run'));
    servers.pop();
  });

  it('stops by refusing new requests, finishing the running ones and removing the socket at once', async () => {
    let answer: (given: PluginResponse) => void = () => undefined;
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const server = await start(() => {
      begin();
      return new Promise((given) => (answer = given));
    });
    const got = ask('{}\n');
    await begun;
    const stopped = server.stop();
    expect(await readdir(join(folder, 'run'))).to.deep.equal([]);
    const successor = await start();
    answer({ exit: 0, output: 'done' });
    expect(read(await got).output).to.equal('done');
    await stopped;
    expect(successor.problem()).to.equal(undefined);
    expect(read(await ask('{}\n')).output).to.equal('{}');
  });

  it('reads the rest of a refused request, so that the caller receives the answer', async () => {
    await start(ECHO, new ManualClock(0));
    // no error is allowed here, neither EPIPE nor ECONNRESET
    const answers = Array.from({ length: 20 }, async () => {
      const socket = createConnection(path);
      socket.end(Buffer.alloc(4 << 20, 'x'));
      const chunks: Buffer[] = [];
      for await (const chunk of socket) chunks.push(chunk as Buffer);
      return codeOf(Buffer.concat(chunks).toString());
    });
    for (const code of await Promise.all(answers)) expect(code).to.equal(6);
  });

  it('closes the connection if the caller has its answer and keeps it open', async () => {
    const clock = new ManualClock(0);
    await start(ECHO, clock);
    const socket = createConnection({ path, allowHalfOpen: true });
    socket.write('{}\n');
    socket.resume();
    await new Promise((resolve) => socket.once('end', resolve));
    await clock.untilAlarmsSet();
    const closed = new Promise((resolve) => socket.once('error', resolve));
    clock.advanceTo(1_000);
    const writing = setInterval(() => socket.write('x'), 1);
    expect(await closed).to.have.property('code', 'EPIPE');
    clearInterval(writing);
    socket.destroy();
  });

  it('cancels requests that still run some time after the stop', async () => {
    const clock = new ManualClock(0);
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const server = await start(async (_text, signal) => {
      begin();
      await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      return { exit: 1, output: (signal.reason as Error).message };
    }, clock);
    const got = ask('{}\n');
    await begun;
    const stopped = server.stop();
    await clock.untilAlarmsSet();
    clock.advanceTo(10_000);
    expect(read(await got).output).to.equal('the agent is stopping');
    await stopped;
  });

  it('survives any bytes that a caller sends', async () => {
    await start();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 300 }), fc.boolean(), async (bytes, end) => {
        const got = read(await ask(Buffer.concat([bytes, Buffer.from(end ? '' : '\n')]), { end }));
        expect(got.exit).to.equal(0);
      }),
      { numRuns: 100 },
    );
  });
});

/** Stops a server without removing its file. */
async function crash(server: Server, path: string): Promise<void> {
  const { rename } = await import('node:fs/promises');
  await rename(path, `${path}.kept`);
  await new Promise<void>((resolve) => server.close(() => resolve()));
  await rename(`${path}.kept`, path);
}
