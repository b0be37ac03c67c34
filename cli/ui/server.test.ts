import { randomBytes } from 'node:crypto';
import { connect } from 'node:net';
import { networkInterfaces } from 'node:os';
import { expect } from 'chai';
import { STATE_NAMES } from '../../addressing/address-states.js';
import { writeLauncher, type Ui } from './serve-ui.js';
import { readFile, stat } from 'node:fs/promises';
import { Sessions } from './session.js';
import { type BrowserSession, enter, send, startUi } from './testing/ui-client.js';
import { WatchedCluster } from './testing/watched-cluster.js';

describe('The server of the web page', () => {
  let ui: Ui;
  let port: number;
  let session: BrowserSession;

  before(async () => {
    ui = await startUi(new WatchedCluster());
    port = ui.server.port;
    session = await enter(ui);
  });
  after(() => ui.stop());

  const own = () => ({ cookie: session.cookie, host: `127.0.0.1:${port}` });

  it('serves the page to the browser that has exchanged the token', async () => {
    const page = await send(port, session.path, { headers: own() });
    expect(page.status).to.equal(200);
    expect(page.body).to.include('page.js');
    for (const file of ['page.js', 'page.css']) {
      expect((await send(port, session.path + file, { headers: own() })).status, file).to.equal(200);
    }
  });

  it('serves the colours of all states of addresses, in both schemes', async () => {
    const { body } = await send(port, `${session.path}page.css`, { headers: own() });
    for (const state of STATE_NAMES) {
      expect(body.match(new RegExp(`--${state}:#`, 'g')), state).to.have.length(2);
      expect(body).to.match(new RegExp(`\\.s-${state}\\{background:[^}]*var\\(--${state}\\)`));
    }
  });

  it('accepts a token once', async () => {
    const { pathname, search } = new URL(ui.server.entranceUrl());
    expect((await send(port, pathname + search)).status).to.equal(200);
    const again = await send(port, pathname + search);
    expect(again.status).to.equal(403);
    expect(again.body).to.include('was used already').and.to.include('kubectl holdfast ui');
    expect(again.headers['set-cookie']).to.equal(undefined);
  });

  it('does not use up the token when a program asks with HEAD', async () => {
    const { pathname, search } = new URL(ui.server.entranceUrl());
    expect((await send(port, pathname + search, { method: 'HEAD' })).status).to.equal(403);
    expect((await send(port, pathname + search)).status).to.equal(200);
  });

  it('accepts no earlier token when a new one was printed', async () => {
    const earlier = new URL(ui.server.entranceUrl());
    ui.server.entranceUrl();
    expect((await send(port, earlier.pathname + earlier.search)).status).to.equal(403);
  });

  it('gives the cookie only to the secret path of this browser, and hides it from scripts', async () => {
    const { pathname, search } = new URL(ui.server.entranceUrl());
    const { headers } = await send(port, pathname + search);
    expect(headers['set-cookie']?.[0]).to.match(/^holdfast=[\w-]{43}; Path=\/[\w-]{43}\/; HttpOnly; SameSite=Strict$/);
  });

  it('lets a link of a terminal, a file or another site open the page with the token', async () => {
    const { pathname, search } = new URL(ui.server.entranceUrl());
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' };
    expect((await send(port, pathname + search, { headers })).status).to.equal(200);
  });

  const attacks: readonly {
    name: string;
    path?: (path: string) => string;
    method?: string;
    headers?: Record<string, string>;
    status?: number;
  }[] = [
    { name: 'a name that points to 127.0.0.1 (DNS rebinding)', headers: { host: 'attacker.example' } },
    { name: 'such a name with the port', headers: { host: 'attacker.example:PORT' } },
    { name: 'a name that begins with that of this host', headers: { host: '127.0.0.1.attacker.example:PORT' } },
    { name: 'another port in the host', headers: { host: '127.0.0.1:1' } },
    { name: 'a request without a port in the host', headers: { host: 'localhost' } },
    { name: 'a page of another site', headers: { origin: 'https://attacker.example' } },
    { name: 'a page on another port of this machine', headers: { origin: 'http://127.0.0.1:1' } },
    { name: 'a page without an origin', headers: { origin: 'null' } },
    { name: 'a request that another site causes', headers: { 'sec-fetch-site': 'cross-site' } },
    { name: 'a request that another port causes', headers: { 'sec-fetch-site': 'same-site' } },
    {
      name: 'a link of another site to the page itself',
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' },
    },
    { name: 'a local user without the cookie', headers: { cookie: '' } },
    { name: 'a local user who guesses the cookie', headers: { cookie: 'holdfast=guess' } },
    { name: 'a local user who has the cookie but not the path', path: () => '/guess/' },
    { name: 'the path of an object', path: () => '/constructor/' },
    { name: 'the root without a token', path: () => '/' },
    { name: 'an empty token', path: () => '/?token=' },
    { name: 'a list of tokens', path: () => '/?token=a&token=b' },
    {
      name: 'a token in a frame',
      path: () => '/?token=a',
      headers: { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'iframe' },
    },
    { name: 'a write', method: 'POST', status: 405 },
    { name: 'a deletion', method: 'DELETE', status: 405 },
    { name: 'a request for options', method: 'OPTIONS', status: 405 },
    { name: 'a file of the machine', path: (path) => `${path}../../etc/passwd`, status: 404 },
    { name: 'a path that cannot be decoded', path: () => '/%E0%A4%A/', status: 400 },
    {
      name: 'a namespace that leads to another path of the API server',
      path: (path) => `${path}views?view=vm&namespace=..&name=a`,
      status: 400,
    },
    {
      name: 'a name of a VM that leads to another path of the API server',
      path: (path) => `${path}views?view=vm&namespace=a&name=..`,
      status: 400,
    },
  ];
  for (const { name, path = (own: string) => own, method = 'GET', headers = {}, status = 403 } of attacks) {
    it(`refuses ${name}`, async () => {
      const given = Object.entries(headers).map(([key, value]) => [key, value.replace('PORT', String(port))]);
      const all = { ...own(), ...(Object.fromEntries(given) as Record<string, string>) };
      const answer = await send(port, path(session.path), { method, headers: all });
      expect(answer.status).to.equal(status);
      expect(answer.headers['content-security-policy']).to.include("default-src 'none'");
      expect(answer.headers['access-control-allow-origin']).to.equal(undefined);
      expect(answer.body).not.to.include('page.js');
    });
  }

  it('allows no script, style, frame or connection but its own', async () => {
    const { headers } = await send(port, session.path, { headers: own() });
    expect(headers['content-security-policy'])
      .to.include("default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'")
      .and.to.include("frame-ancestors 'none'")
      .and.to.include("require-trusted-types-for 'script'; trusted-types 'none'");
    expect(headers).to.include({
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-store',
      'cross-origin-resource-policy': 'same-origin',
    });
  });

  it('listens on loopback only', async () => {
    const others = Object.values(networkInterfaces())
      .flatMap((addresses) => addresses ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal);
    for (const { address } of others) {
      const isOpen = await new Promise((resolve) => {
        const socket = connect({ host: address, port });
        socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
        socket.unref();
      });
      expect(isOpen, address).to.equal(false);
    }
  });

  it('still answers when another program keeps as many connections open as it allows', async () => {
    const sockets = Array.from({ length: 80 }, () => connect({ host: '127.0.0.1', port }).on('error', () => undefined));
    await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    expect((await send(port, session.path, { headers: own() })).status).to.equal(200);
    for (const socket of sockets) socket.destroy();
  });

  it('says which port is in use', async () => {
    const other = startUi(new WatchedCluster(), { port });
    await other.then(
      () => expect.fail('two servers listen on one port'),
      (error: unknown) => expect(String(error)).to.include(`cannot listen on 127.0.0.1:${port}`).and.include('--port'),
    );
  });
});

describe('The sessions of the web page', () => {
  it('are bounded: the oldest ends', () => {
    const sessions = new Sessions(randomBytes);
    const opened = Array.from({ length: 17 }, () => sessions.open(sessions.issueToken())!);
    expect(opened.map(({ path, cookie }) => sessions.isOpen(path, cookie))).to.deep.equal([
      false,
      ...Array.from({ length: 16 }, () => true),
    ]);
  });

  it('do not accept the cookie of another session', () => {
    const sessions = new Sessions(randomBytes);
    const [one, other] = [sessions.open(sessions.issueToken())!, sessions.open(sessions.issueToken())!];
    expect(sessions.isOpen(one.path, other.cookie)).to.equal(false);
  });
});

describe('The file that opens the browser', () => {
  it('can be read by its owner only, and is removed with its folder', async () => {
    const file = await writeLauncher('http://127.0.0.1:1/?token=t');
    expect(((await stat(file.path)).mode & 0o777).toString(8)).to.equal('600');
    expect(await readFile(file.path, 'utf8')).to.include('url=http://127.0.0.1:1/?token=t');
    await file.remove();
    expect(await stat(file.path).catch(() => undefined)).to.equal(undefined);
  });
});
