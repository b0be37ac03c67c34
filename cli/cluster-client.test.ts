import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, stringify } from 'yaml';
import { writeKubeconfig } from '../bed/control-plane/kubeconfig.js';
import { ADDRESS_POOLS } from '../kube/resources.js';
import { FaultServer, type Reply, status } from '../test/https/fault-server.js';
import { requestErrorOf } from '../test/request-error.js';
import { CommandError } from './exit-code.js';
import { withClient } from './cluster-client.js';

describe('the client of kubectl holdfast', () => {
  let folder: string;
  let server: FaultServer;
  let kubeconfig: string;
  let reply: Reply;

  before(async function () {
    // unbundled, hundreds of modules
    this.timeout(60_000);
    await import('@kubernetes/client-node/dist/config.js');
  });
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
    server = await FaultServer.start(() => reply);
    const caBundle = Buffer.from(server.certificate.ca).toString('base64');
    kubeconfig = await writeKubeconfig(join(folder, 'config'), { server: server.url, caBundle }, 'token');
  });
  afterEach(async () => {
    await server.stop();
    await rm(folder, { recursive: true });
  });

  const ask = () => withClient({ kubeconfig }, ({ client }) => client.get(ADDRESS_POOLS, { name: 'blue' }));

  it('uses the rights of another user and of its groups, as kubectl does', async () => {
    reply = { body: { metadata: { name: 'blue' }, spec: {} } };
    const options = { kubeconfig, as: 'jane', asGroup: ['lab', 'ops'] };
    await withClient(options, ({ client }) => client.get(ADDRESS_POOLS, { name: 'blue' }));
    const { headers } = server.seen[0]!;
    expect(headers).to.include({ 'impersonate-user': 'jane', 'impersonate-group': 'lab, ops' });
  });

  it('repeats the flags for cluster and user in commands that it prints, quoted for a shell', async () => {
    const given = { kubeconfig, as: "eve's cat", asGroup: ['lab', 'ops'] };
    const flags = await withClient(given, ({ clusterFlags }) => Promise.resolve(clusterFlags));
    expect(flags).to.equal(` --kubeconfig ${kubeconfig} --as 'eve'\\''s cat' --as-group lab --as-group ops`);
  });

  it('repeats them in commands of Helm by the names that Helm has for them', async () => {
    const given = { kubeconfig, context: 'bed', as: 'eve', asGroup: ['lab'] };
    const flags = await withClient(given, ({ helmClusterFlags }) => Promise.resolve(helmClusterFlags));
    expect(flags).to.equal(` --kubeconfig ${kubeconfig} --kube-context bed --kube-as-user eve --kube-as-group lab`);
  });

  it('repeats them in commands that the error of a command names', async () => {
    const refuse = () => Promise.reject(new CommandError('10.0.0.5 is reserved: run kubectl holdfast unreserve blue'));
    const refusal: unknown = await withClient({ kubeconfig }, refuse).catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(CommandError);
    expect((refusal as CommandError).message).to.equal(
      `10.0.0.5 is reserved: run kubectl holdfast --kubeconfig ${kubeconfig} unreserve blue`,
    );
  });

  const unusable: { name: string; given: Reply | 'nobody'; expect: string }[] = [
    { name: 'if no server answers', given: 'nobody', expect: 'ECONNREFUSED' },
    { name: 'if another server answers', given: { body: '<html>' }, expect: 'the response is not JSON' },
    {
      name: 'if the credentials are not accepted',
      given: { status: 401, body: status(401, 'Unauthorized') },
      expect: 'may have expired: log in again',
    },
  ];
  for (const { name, given, expect: words } of unusable) {
    it(`names the server and says what to do ${name}`, async () => {
      const { url } = server;
      if (given === 'nobody') await server.stop();
      else reply = given;
      const refusal = await ask().catch((error: unknown) => error);
      expect(refusal).to.be.instanceOf(CommandError);
      expect((refusal as CommandError).message)
        .to.include(words)
        .and.include(`kubectl reaches ${url} `)
        .and.include('--context');
    });
  }

  for (const [where, context, expected] of [
    ['the namespace of the context', { namespace: 'lab' }, 'lab'],
    ['the namespace default if the context names none', {}, 'default'],
  ] as const) {
    it(`uses ${where}`, async () => {
      const config = parse(await readFile(kubeconfig, 'utf8')) as { contexts: { context: object }[] };
      Object.assign(config.contexts[0]!.context, context);
      await writeFile(kubeconfig, stringify(config));
      expect(await withClient({ kubeconfig }, ({ home }) => Promise.resolve(home))).to.equal(expected);
    });
  }

  it('passes on other errors of the API server unchanged', async () => {
    reply = { status: 403, body: status(403, 'Forbidden', 'a policy refuses') };
    expect((await requestErrorOf(ask())).message).to.match(/403 Forbidden: a policy refuses$/);
  });

  it('says which right the user lacks, and whom to ask', async () => {
    const text =
      'addresspools.ipam.holdfast.dev "blue" is forbidden: User "jane" cannot get resource "addresspools" in API group "ipam.holdfast.dev" at the cluster scope';
    reply = { status: 403, body: status(403, 'Forbidden', text) };
    const refusal = await ask().catch((error: unknown) => error);
    expect(refusal).to.be.instanceOf(CommandError);
    expect((refusal as CommandError).message).to.equal(
      'user "jane" may not get addresspools.ipam.holdfast.dev in the whole cluster: ask an administrator for this right, which the ClusterRole holdfast-view contains',
    );
  });
});
