import { expect } from 'chai';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { type CredentialsOptions, loadCredentials } from './credentials.js';

interface Kubeconfig {
  server?: string;
  cluster?: object;
  user?: object;
}

function kubeconfig({ server = 'https://one:6443', cluster = {}, user = {} }: Kubeconfig): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'one', cluster: { server, ...cluster } },
      { name: 'two', cluster: { server: 'https://two:6443', 'insecure-skip-tls-verify': true } },
    ],
    users: [{ name: 'me', user }],
    contexts: [
      { name: 'one', context: { cluster: 'one', user: 'me' } },
      { name: 'two', context: { cluster: 'two', user: 'me', namespace: 'lab' } },
    ],
    'current-context': 'one',
  });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

describe('loadCredentials', () => {
  let folder: string;
  before(async function () {
    // Unbundled, hundreds of modules.
    this.timeout(60_000);
    await import('@kubernetes/client-node/dist/config.js');
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  /** As on a machine where nothing is set but what the test sets. */
  function load(options: CredentialsOptions = {}) {
    const serviceAccountDirectory = join(folder, 'serviceaccount');
    return loadCredentials({ serviceAccountDirectory, environment: { HOME: folder }, ...options });
  }

  async function write(name: string, text: string): Promise<string> {
    const path = join(folder, name);
    await mkdir(join(path, '..'), { recursive: true });
    await writeFile(path, text);
    return path;
  }

  async function messageFrom(loading: Promise<unknown>): Promise<string> {
    return loading.then(
      () => 'no error',
      (error: unknown) => (error as Error).message,
    );
  }

  it('prefers the given file to KUBECONFIG, KUBECONFIG to a service account, and that to the home directory', async () => {
    const given = await write('given', kubeconfig({ server: 'https://given' }));
    const listed = await write('listed', kubeconfig({ server: 'https://listed' }));
    await write('serviceaccount/token', 'token');
    await write('.kube/config', kubeconfig({ server: 'https://home' }));
    const pod = { KUBERNETES_SERVICE_HOST: '10.96.0.1', KUBERNETES_SERVICE_PORT: '443' };
    const all = { HOME: folder, KUBECONFIG: listed, ...pod };
    const servers = [
      await load({ kubeconfig: given, environment: all }),
      await load({ environment: all }),
      await load({ environment: { HOME: folder, ...pod } }),
      await load(),
    ].map((credentials) => credentials.server);
    expect(servers).to.deep.equal(['https://given', 'https://listed', 'https://10.96.0.1:443', 'https://home']);
  });

  it('uses the given context, or the current one', async () => {
    const path = await write('config', kubeconfig({}));
    expect((await load({ kubeconfig: path })).server).to.equal('https://one:6443');
    const two = await load({ kubeconfig: path, context: 'two' });
    expect(two.server).to.equal('https://two:6443');
    expect(await two.tls()).to.deep.equal({ rejectUnauthorized: false });
  });

  it('reads the namespace of the context, or of the pod', async () => {
    const path = await write('config', kubeconfig({}));
    expect((await load({ kubeconfig: path })).namespace).to.equal(undefined);
    expect((await load({ kubeconfig: path, context: 'two' })).namespace).to.equal('lab');
    await write('serviceaccount/token', 'token');
    const environment = { KUBERNETES_SERVICE_HOST: '10.96.0.1' };
    expect((await load({ environment })).namespace).to.equal(undefined);
    await write('serviceaccount/namespace', 'ours\n');
    expect((await load({ environment })).namespace).to.equal('ours');
  });

  it('reads certificates, server name and client certificate', async () => {
    await write('ca.pem', 'CA');
    const cluster = { 'certificate-authority': 'ca.pem', 'tls-server-name': 'api.example' };
    const user = { 'client-certificate-data': base64('CERT'), 'client-key-data': base64('KEY') };
    const path = await write('config', kubeconfig({ cluster, user }));
    const tls = await (await load({ kubeconfig: path })).tls();
    expect({ ...tls, ca: String(tls.ca), cert: String(tls.cert), key: String(tls.key) }).to.deep.equal({
      ca: 'CA',
      cert: 'CERT',
      key: 'KEY',
      servername: 'api.example',
      rejectUnauthorized: true,
    });
  });

  it('sends tokens, passwords and impersonation as headers', async () => {
    const token = await write('token', kubeconfig({ user: { token: 'secret', as: 'somebody' } }));
    expect(await (await load({ kubeconfig: token })).headers()).to.deep.equal({
      authorization: 'Bearer secret',
      'impersonate-user': 'somebody',
    });
    const password = await write('password', kubeconfig({ user: { username: 'u', password: 'p' } }));
    expect(await (await load({ kubeconfig: password })).headers()).to.deep.equal({
      authorization: `Basic ${base64('u:p')}`,
    });
  });

  it('runs an exec plugin once, and again after a refresh', async () => {
    const count = join(folder, 'count');
    const script = `echo x >> ${count}; printf '{"kind":"ExecCredential","status":{"token":"run-%d"}}' $(wc -l < ${count})`;
    const exec = { apiVersion: 'client.authentication.k8s.io/v1', command: 'sh', args: ['-c', script] };
    const path = await write('config', kubeconfig({ user: { exec } }));
    const credentials = await load({ kubeconfig: path });
    await credentials.tls();
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer run-1' });
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer run-1' });
    await credentials.refresh();
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer run-2' });
  });

  it('stays with its context after a refresh, although another one has become current meanwhile', async () => {
    const path = await write('config', kubeconfig({}));
    const credentials = await load({ kubeconfig: path });
    await writeFile(path, kubeconfig({}).replace('current-context: one', 'current-context: two'));
    await credentials.refresh();
    expect(await credentials.tls()).to.deep.equal({ rejectUnauthorized: true });
  });

  it('reads a rotated token file, certificate and service account again', async () => {
    const tokenFile = await write('token', 'first\n');
    const path = await write('config', kubeconfig({ user: { tokenFile } }));
    const credentials = await load({ kubeconfig: path });
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer first' });
    await write('token', 'second\n');
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer second' });

    await write('serviceaccount/token', 'first\n');
    await write('serviceaccount/ca.crt', 'CA 1');
    const pod = await load({ environment: { KUBERNETES_SERVICE_HOST: 'fd00::1' } });
    expect(pod.server).to.equal('https://[fd00::1]:443');
    expect(await pod.headers()).to.deep.equal({ authorization: 'Bearer first' });
    await write('serviceaccount/token', 'second\n');
    await write('serviceaccount/ca.crt', 'CA 2');
    expect(await pod.headers()).to.deep.equal({ authorization: 'Bearer second' });
    expect(String((await pod.tls()).ca)).to.equal('CA 2');
  });

  it('merges the files that KUBECONFIG lists', async () => {
    const first = await write(
      'first',
      stringify({ contexts: [{ name: 'far', context: { cluster: 'far', user: 'me' } }] }),
    );
    const second = await write(
      'second',
      stringify({ clusters: [{ name: 'far', cluster: { server: 'https://far' } }], users: [{ name: 'me', user: {} }] }),
    );
    const credentials = await load({ context: 'far', environment: { KUBECONFIG: `${first}:${second}` } });
    expect(credentials.server).to.equal('https://far');
  });

  it('takes an entry that several files of KUBECONFIG have from the first of them, as kubectl does', async () => {
    const first = await write('first', kubeconfig({ user: { token: 'first' } }));
    const second = await write('second', kubeconfig({ server: 'https://other', user: { tokenFile: 'token' } }));
    const credentials = await load({ environment: { KUBECONFIG: `${first}:${second}` } });
    expect(credentials.server).to.equal('https://one:6443');
    expect(await credentials.headers()).to.deep.equal({ authorization: 'Bearer first' });
  });

  it('skips files of KUBECONFIG that do not exist, as kubectl does, unless none exists', async () => {
    const path = await write('config', kubeconfig({}));
    const [missing, other] = [join(folder, 'missing'), join(folder, 'other')];
    const credentials = await load({ environment: { KUBECONFIG: `${missing}:${path}` } });
    expect(credentials.server).to.equal('https://one:6443');
    expect(await messageFrom(load({ environment: { KUBECONFIG: `${missing}:${other}` } }))).to.include(
      `cannot read kubeconfig ${missing}: ENOENT`,
    );
    await write('invalid', '{');
    expect(await messageFrom(load({ environment: { KUBECONFIG: `${path}:${join(folder, 'invalid')}` } }))).to.match(
      /^cannot read kubeconfig .*invalid: /,
    );
  });

  it('ignores empty files of KUBECONFIG, and those with comments only, as kubectl does', async () => {
    const path = await write('config', kubeconfig({}));
    for (const text of ['', '\n', '# moved\n---\n']) {
      const empty = await write('empty', text);
      expect((await load({ environment: { KUBECONFIG: `${empty}:${path}` } })).server).to.equal('https://one:6443');
      expect(await messageFrom(load({ kubeconfig: empty }))).to.equal(
        `kubeconfig ${empty} names no current context; there are: none`,
      );
    }
  });

  it('rejects a server without TLS, such as kubectl proxy, unless it is allowed explicitly', async () => {
    const server = 'http://127.0.0.1:8001';
    const path = await write('proxy', kubeconfig({ server }));
    expect(await messageFrom(load({ kubeconfig: path })))
      .to.include(`context "one" of kubeconfig ${path} names ${server}`)
      .and.include('choose a context whose server is https://');
    const asked = await write('asked', kubeconfig({ server, cluster: { 'insecure-skip-tls-verify': true } }));
    expect((await load({ kubeconfig: asked })).server).to.equal(server);
  });

  it('reports what is wrong and where', async () => {
    expect(await messageFrom(load())).to.match(/^no cluster credentials: set --kubeconfig or KUBECONFIG;/);
    const missing = join(folder, 'missing');
    expect(await messageFrom(load({ kubeconfig: missing }))).to.match(
      new RegExp(
        `^cannot read kubeconfig ${missing}: ENOENT.*: correct the file, or name another one with --kubeconfig`,
      ),
    );
    const path = await write('config', kubeconfig({ cluster: { 'proxy-url': 'socks5://p' } }));
    expect(await messageFrom(load({ kubeconfig: path }))).to.equal(
      `context "one" of kubeconfig ${path} has proxy-url socks5://p, which Holdfast does not support`,
    );
    expect(await messageFrom(load({ kubeconfig: path, context: 'nowhere' }))).to.equal(
      `kubeconfig ${path} has no context "nowhere"; there are: one, two`,
    );
    const aimless = await write(
      'aimless',
      stringify({ contexts: [{ name: 'far', context: { cluster: 'x', user: 'me' } }] }),
    );
    expect(await messageFrom(load({ kubeconfig: aimless }))).to.equal(
      `kubeconfig ${aimless} names no current context; there are: far`,
    );
    expect(await messageFrom(load({ kubeconfig: aimless, context: 'far' }))).to.equal(
      `context "far" of kubeconfig ${aimless} names no cluster with a server`,
    );
    const empty = await write('foo', 'foo');
    expect(await messageFrom(load({ kubeconfig: empty }))).to.equal(
      `kubeconfig ${empty} names no current context; there are: none`,
    );
  });
});
