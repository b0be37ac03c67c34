import { execFile, spawn } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { type Server, type Socket, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'chai';
import fc from 'fast-check';
import { type PluginRequest, readPluginRequest } from '../agent/request.js';
import type { PluginResponse } from '../agent/result.js';
import { PendingDeletes, MAX_PENDING_DELETES, pendingDeleteFileName } from '../agent/pending-deletes.js';
import { SocketServer } from '../agent/server.js';
import { systemClock } from '../../kube/clock.js';
import { silentLogger } from '../../kube/log.js';
import { readGuardNotes } from '../agent/guard/guard-notes.js';
import { pluginRequest } from '../testing/cni-requests.js';

const run = promisify(execFile);
const ARCHITECTURE = process.arch === 'x64' ? 'amd64' : process.arch;

interface Outcome {
  exit: number | null;
  stdout: string;
  stderr: string;
}

describe('the CNI plugin binary', () => {
  let binaries: string;
  let folder: string;
  let socket: string;
  const closing: (() => Promise<void>)[] = [];

  before(async function () {
    this.timeout(300_000); // the first time it is compiled
    binaries = await mkdtemp(join(tmpdir(), 'holdfast-'));
    await run(process.execPath, [join(import.meta.dirname, 'build.js'), binaries]);
  });
  after(() => rm(binaries, { recursive: true }));
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
    socket = join(folder, 'agent.sock');
  });
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
    await rm(folder, { recursive: true });
  });

  function start({ env, config }: PluginRequest, more: Record<string, string> = {}) {
    const child = spawn(join(binaries, `holdfast-linux-${ARCHITECTURE}`), [], {
      env: { HOLDFAST_SOCKET: socket, OTHER: 'not sent', ...env, ...more },
    });
    child.stdin.on('error', () => undefined); // it need not read all
    child.stdin.end(config);
    return child;
  }

  function call(ask: PluginRequest, more: Record<string, string> = {}): Promise<Outcome> {
    const child = start(ask, more);
    const outcome: Outcome = { exit: null, stdout: '', stderr: '' };
    child.stdout.setEncoding('utf8').on('data', (text: string) => (outcome.stdout += text));
    child.stderr.setEncoding('utf8').on('data', (text: string) => (outcome.stderr += text));
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (exit) => resolve({ ...outcome, exit }));
    });
  }

  async function serve(answer: (text: string, signal: AbortSignal) => Promise<PluginResponse>): Promise<void> {
    const server = new SocketServer({ path: socket, answer, clock: systemClock, log: silentLogger });
    await server.listen();
    closing.push(() => server.stop());
  }

  /** Starts an agent that behaves wrongly. */
  async function serveOddly(behave: (socket: Socket) => void): Promise<void> {
    const sockets = new Set<Socket>();
    const server: Server = createServer({ allowHalfOpen: true }, (each) => {
      sockets.add(each.on('error', () => undefined));
      behave(each);
    });
    await new Promise<void>((resolve) => server.listen(socket, resolve));
    closing.push(async () => {
      for (const each of sockets) each.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    });
  }

  function errorIn({ exit, stdout }: Outcome): { code: number; msg: string; cniVersion: string; details?: string } {
    expect(exit).to.equal(1);
    return JSON.parse(stdout) as { code: number; msg: string; cniVersion: string };
  }

  it('is statically linked and needs nothing on the host', async () => {
    const path = join(binaries, `holdfast-linux-${ARCHITECTURE}`);
    const binary = await readFile(path);
    // the section that names a dynamic linker
    expect(binary.includes('/ld-linux')).to.equal(false);
    expect(binary.includes('/ld-musl')).to.equal(false);
    expect((await stat(path)).mode & 0o111).to.equal(0o111);
    expect((await readdir(binaries)).sort()).to.deep.equal(['holdfast-linux-amd64', 'holdfast-linux-arm64']);
  });

  it("passes on the runtime's variables and stdin, and prints the agent's answer unchanged", async () => {
    const seen: PluginRequest[] = [];
    await serve((text) => {
      seen.push(readPluginRequest(text));
      return Promise.resolve({ exit: 0, output: '{"ips": ["<ä>"]}' });
    });
    const ask = pluginRequest('ADD', { CNI_ARGS: 'A=<&>;B=ä' }, { name: 'bl<ü>e' });
    expect(await call(ask)).to.deep.equal({ exit: 0, stdout: '{"ips": ["<ä>"]}', stderr: '' });
    expect(seen).to.deep.equal([ask]);
  });

  it("exits with the code of the agent's answer", async () => {
    await serve(() => Promise.resolve({ exit: 1, output: '{"code": 7}' }));
    expect(await call(pluginRequest('DEL'))).to.deep.equal({ exit: 1, stdout: '{"code": 7}', stderr: '' });
    expect(await readdir(folder)).to.deep.equal(['agent.sock']);
  });

  it('fails an ADD whose rules it must apply and cannot, and only reports rules that observe', async () => {
    const subject = { namespace: 'vms', pod: 'p1', interfaceName: 'net1', pool: 'blue' };
    const guard = { sets: [], chains: [], subject, isGuest: true };
    const ask = pluginRequest('ADD', { CNI_NETNS: join(folder, 'absent') });
    await serve(() => Promise.resolve({ exit: 0, output: '{}', guard: { ...guard, mode: 'Enforce' } }));
    const outcome = errorIn(await call(ask));
    expect(outcome.code).to.equal(100);
    expect(outcome.msg).to.include('the guard of interface net1 cannot be applied: cannot open CNI_NETNS');
    for (const close of closing.splice(0)) await close();
    await serve(() => Promise.resolve({ exit: 0, output: '{}', guard: { ...guard, mode: 'Observe' } }));
    const { stderr, ...observed } = await call(ask);
    expect(observed).to.deep.equal({ exit: 0, stdout: '{}' });
    expect(stderr).to.include('the guard of interface net1 cannot be applied');
    const [note] = await readGuardNotes(join(folder, 'guards'));
    expect(note).to.deep.include({ mode: 'Observe', subject });
    expect(note?.failure).to.include('cannot open CNI_NETNS');
    for (const close of closing.splice(0)) await close();
    await serve(() => Promise.resolve({ exit: 0, output: '' }));
    await call(pluginRequest('DEL'));
    expect(await readdir(join(folder, 'guards'))).to.deep.equal([]);
  });

  it("returns the agent's refusal of a config that is too long", async () => {
    await serve(() => Promise.reject(new Error('it is not asked')));
    expect(errorIn(await call({ ...pluginRequest('ADD'), config: 'x'.repeat(8 << 20) }))).to.include({ code: 6 });
  });

  it('sends only the version of the config of a DEL, so that the agent does not refuse a large one', async () => {
    const seen: string[] = [];
    await serve((text) => {
      seen.push(readPluginRequest(text).config);
      return Promise.resolve({ exit: 0, output: '' });
    });
    const large = pluginRequest('DEL', {}, { junk: 'x'.repeat(8 << 20) });
    for (const ask of [large, { ...large, config: '{"cniVersion"' }])
      expect(await call(ask)).to.deep.equal({ exit: 0, stdout: '', stderr: '' });
    expect(seen).to.deep.equal(['{"cniVersion":"1.0.0"}', '{"cniVersion"']);
  });

  it('serves many parallel calls', async () => {
    await serve((text) => Promise.resolve({ exit: 0, output: readPluginRequest(text).env.CNI_CONTAINERID ?? '' }));
    const ids = Array.from({ length: 100 }, (_, index) => `c${index}`);
    const outcomes = await Promise.all(ids.map((id) => call(pluginRequest('ADD', { CNI_CONTAINERID: id }))));
    expect(outcomes.map(({ stdout }) => stdout)).to.deep.equal(ids);
  });

  it('closes its connection to the agent when it is killed', async () => {
    let begin: () => void = () => undefined;
    const begun = new Promise<void>((resolve) => (begin = resolve));
    const aborted = new Promise<void>((resolve) => {
      void serve(async (_text, signal) => {
        begin();
        await new Promise((gone) => signal.addEventListener('abort', gone));
        resolve();
        return { exit: 0, output: '' };
      }).then(async () => {
        const child = start(pluginRequest('ADD'));
        await begun;
        child.kill('SIGKILL');
      });
    });
    await aborted;
  });

  it('reports that CNI_COMMAND is absent without waiting for stdin', async () => {
    const outcome = errorIn(await call({ env: {}, config: '' }));
    expect(outcome).to.include({ code: 4, cniVersion: '1.1.0' });
    expect(outcome.msg).to.include('CNI_COMMAND');
  });

  const unwell: { name: string; behave: (socket: Socket) => void; says: string }[] = [
    { name: 'closes the connection', behave: (each) => each.end(), says: 'closed the connection without an answer' },
    { name: 'stops in the middle of its answer', behave: (each) => each.end('{"exit":0,'), says: 'answer is invalid' },
    { name: 'speaks HTTP', behave: (each) => each.end('HTTP/1.1 400 Bad Request\r\n\r\n'), says: 'answer is invalid' },
    { name: 'omits the exit code', behave: (each) => each.end('{"output":"{}"}'), says: 'no exit code' },
    { name: 'omits the output', behave: (each) => each.end('{"exit":0}'), says: 'no output' },
    { name: 'does not answer', behave: () => undefined, says: 'no answer within 200ms' },
    { name: 'never ends its answer', behave: (each) => each.write('{"exit":0,"output":""}'), says: 'no answer within' },
  ];
  const agents: { name: string; prepare: () => Promise<void>; says: string }[] = [
    { name: 'does not exist', prepare: () => Promise.resolve(), says: 'no such file' },
    { name: 'has exited', prepare: () => writeFile(socket, ''), says: 'refused' },
    ...unwell.map(({ name, behave, says }) => ({ name, prepare: () => serveOddly(behave), says })),
  ];
  for (const { name, prepare, says } of agents) {
    describe(`while the agent ${name}`, () => {
      const SOON = { HOLDFAST_TIMEOUT: '200ms' };

      it('fails with code 11, so that the runtime tries again', async () => {
        await prepare();
        for (const command of ['ADD', 'CHECK', 'GC', 'VERSION']) {
          const outcome = await call(pluginRequest(command), SOON);
          expect(errorIn(outcome)).to.include({ code: 11, cniVersion: '1.0.0' });
          expect(errorIn(outcome).details).to.include(says);
          expect(outcome.stderr).to.include(says);
        }
        expect(errorIn(await call(pluginRequest('STATUS', {}, { cniVersion: '1.1.0' }), SOON)).code).to.equal(50);
        expect(errorIn(await call({ ...pluginRequest('ADD'), config: 'x' }, SOON)).cniVersion).to.equal('1.1.0');
      });

      it('lets a DEL succeed and stores a pending delete that the agent can read', async () => {
        await prepare();
        const ask = pluginRequest('DEL', { CNI_CONTAINERID: 'sb-1' }, { name: '<ä>' });
        expect(await call(ask, SOON)).to.include({ exit: 0, stdout: '' });
        const deletions = join(folder, 'deletions');
        const pendingDeletes = new PendingDeletes({ folder: deletions, clock: systemClock, log: silentLogger });
        const target = { containerId: 'sb-1', interfaceName: 'net1' };
        const name = pendingDeleteFileName(target);
        expect(await pendingDeletes.list()).to.deep.equal([{ name, target: { command: 'DEL', ...target } }]);
        const env = { CNI_COMMAND: 'DEL', CNI_CONTAINERID: 'sb-1', CNI_IFNAME: 'net1' };
        expect(readPluginRequest(await readFile(join(deletions, name), 'utf8'))).to.deep.equal({ env, config: '' });
        expect(await readdir(deletions)).to.have.length(1);
        expect((await stat(deletions)).mode & 0o777).to.equal(0o700);
      });
    });
  }

  it('lets a DEL succeed without a pending delete if there are too many', async function () {
    this.timeout(30_000);
    const deletions = join(folder, 'deletions');
    await mkdir(deletions);
    const paths = Array.from({ length: MAX_PENDING_DELETES }, (_, index) => join(deletions, `other-${index}.json`));
    await Promise.all(paths.map((path) => writeFile(path, '')));
    const { exit, stderr } = await call(pluginRequest('DEL'));
    expect(exit).to.equal(0);
    expect(stderr).to.include('too many pending deletes');
    expect(await readdir(deletions)).to.have.length(MAX_PENDING_DELETES);
    await rm(paths[0]!);
    expect(await call(pluginRequest('DEL'))).to.include({ exit: 0 });
    expect(await readdir(deletions)).to.include('c1-net1.json');
    await rm(deletions, { recursive: true });
  });

  it('creates the folder of pending deletes, as after a reboot', async () => {
    socket = join(folder, 'run', 'agent.sock');
    expect(await call(pluginRequest('DEL'))).to.include({ exit: 0 });
    expect(await readdir(join(dirname(socket), 'deletions'))).to.deep.equal(['c1-net1.json']);
  });

  it('fails a DEL with code 11 if it cannot store a pending delete', async () => {
    await writeFile(join(folder, 'deletions'), '');
    const outcome = errorIn(await call(pluginRequest('DEL')));
    expect(outcome).to.include({ code: 11 });
    expect(outcome.details).to.include('the pending delete could not be stored');
    await rm(join(folder, 'deletions'));
    expect(errorIn(await call(pluginRequest('DEL', { CNI_IFNAME: undefined }))).code).to.equal(11);
  });

  it('gives up at its deadline even if stdin does not end', async () => {
    const child = spawn(join(binaries, `holdfast-linux-${ARCHITECTURE}`), [], {
      env: { ...pluginRequest('DEL').env, HOLDFAST_SOCKET: socket, HOLDFAST_TIMEOUT: '200ms' },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const exit = await new Promise((resolve) => child.once('close', resolve));
    expect(exit).to.equal(0);
    expect(await readdir(join(folder, 'deletions'))).to.deep.equal(['c1-net1.json']);
  });

  it('uses the same file names for pending deletes as the agent', async function () {
    this.timeout(60_000);
    const text = fc.oneof(
      fc.string({ minLength: 1, maxLength: 20 }),
      fc.string({ minLength: 1, unit: fc.constantFrom('a', '-', '.', '_', 'Z', '9', 'ä', '/') }),
      fc.constantFrom('a'.repeat(64), 'a'.repeat(200), '..'),
    );
    const variable = text.filter((value) => !value.includes('\0'));
    const deletions = join(folder, 'deletions');
    await mkdir(deletions);
    await chmod(deletions, 0o700);
    await fc.assert(
      fc.asyncProperty(variable, variable, async (containerId, interfaceName) => {
        await call(pluginRequest('DEL', { CNI_CONTAINERID: containerId, CNI_IFNAME: interfaceName }));
        expect(await readdir(deletions)).to.deep.equal([pendingDeleteFileName({ containerId, interfaceName })]);
        await rm(join(deletions, pendingDeleteFileName({ containerId, interfaceName })));
      }),
      { numRuns: 150 },
    );
  });
});
