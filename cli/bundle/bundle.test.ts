import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { Client } from '../../kube/client.js';
import { TransportHarness } from '../../test/https/transport-harness.js';
import type { Handler, Reply } from '../../test/https/fault-server.js';
import { BUNDLE_LIMITS, collectBundle } from './collect.js';
import { BundleNotes } from './notes.js';
import type { ArchivedFile } from './tar.js';
import { writeBundle } from './write-bundle.js';

const NOW = Date.parse('2020-01-31T14:00:00Z');
const FOLDER = 'holdfast-bundle-20200131-140000';
const POD = {
  metadata: {
    namespace: 'holdfast-system',
    name: 'holdfast-ipam-x',
    labels: { 'app.kubernetes.io/component': 'ipam' },
  },
  spec: {
    containers: [
      { name: 'ipam', env: [{ name: 'A', value: 'sesame' }], ports: [{ name: 'metrics', containerPort: 8443 }] },
    ],
  },
  status: { containerStatuses: [{ name: 'ipam', restartCount: 1 }] },
};
const ANNOTATIONS = { 'example.com/licence': 'licence-4711', 'network.kubevirt.io/addresses': '{"data":["10.0.0.5"]}' };
const VM = {
  metadata: { namespace: 'vms', name: 'vm1', annotations: ANNOTATIONS },
  spec: {
    template: { metadata: { annotations: ANNOTATIONS }, spec: { networks: [{ multus: { networkName: 'data' } }] } },
  },
};
const LEASES = '/apis/ipam.holdfast.dev/v1alpha1/addressleases';
const IN_SYSTEM = '/api/v1/namespaces/holdfast-system/pods';

const forbidden = (resource: string): Reply => ({
  status: 403,
  body: {
    ...{ kind: 'Status', reason: 'Forbidden' },
    message: `${resource} is forbidden: User "eve" cannot list resource "${resource}" in API group "" at the cluster scope`,
  },
});
const leases = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ metadata: { name: `blue.${index}` }, spec: { address: `${index}` } }));

describe('a bundle', () => {
  const harness = new TransportHarness();
  let folder: string;

  beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'holdfast-bundle-'))));
  afterEach(() => rm(folder, { recursive: true }));

  /** @param answers by path; other lists are empty, and reviews allow everything */
  function serve(answers: Readonly<Record<string, Handler>>): void {
    harness.connect(
      (request, index) =>
        answers[request.path]?.(request, index) ?? { body: { metadata: {}, items: [], status: { allowed: true } } },
    );
  }

  function write(file = join(folder, 'bundle.tar.gz'), namespace?: string): ReturnType<typeof writeBundle> {
    const { transport } = harness;
    const options = { namespace, sinceSeconds: 3600 };
    const deps = { now: NOW, showProgress: () => undefined };
    return writeBundle({ client: new Client(transport), transport, home: 'default' }, { file }, options, deps);
  }

  it('is an archive that tar unpacks, with objects and logs, without secrets', async () => {
    serve({
      [LEASES]: () => ({ body: { items: leases(3) } }),
      [IN_SYSTEM]: () => ({ body: { items: [POD] } }),
      [`${IN_SYSTEM}/holdfast-ipam-x/log`]: ({ query }) => ({
        body: query.has('previous') ? 'panic: token=abcdef\n' : `since ${query.get('sinceSeconds')}\n`,
      }),
      [`${IN_SYSTEM}/${encodeURIComponent('https:holdfast-ipam-x:8443')}/proxy/metrics`]: () => ({
        status: 401,
        body: {},
      }),
    });
    const { missing, isUnchecked } = await write();
    expect(isUnchecked).to.equal(false);
    const file = join(folder, 'bundle.tar.gz');
    execFileSync('tar', ['--extract', '--gzip', '--file', file, '--directory', folder]);
    const read = (...path: string[]) => readFile(join(folder, FOLDER, ...path), 'utf8');
    const list = JSON.parse(await read('objects', 'addressleases', 'all-0001.json')) as { items: unknown[] };
    expect(list.items).to.have.length(3);
    expect(await read('objects', 'pods', 'holdfast-system-0001.json')).not.to.include('sesame');
    expect(await read('logs', 'holdfast-system.holdfast-ipam-x', 'ipam.log')).to.equal('since 3600\n');
    expect(await read('logs', 'holdfast-system.holdfast-ipam-x', 'ipam.previous.log')).to.equal(
      'panic: token=REDACTED\n',
    );
    expect(await read('doctor.txt')).to.include('no workload of the component controller exists');
    expect(await read('README.txt'))
      .to.include('Made by kubectl holdfast bundle')
      .and.to.include(missing[0]);
    expect(missing.join('\n')).to.match(/^MISSING {2}metrics\/holdfast-system\.holdfast-ipam-x\.txt: .*401/m);
    expect((await stat(file)).mode & 0o077).to.equal(0);
    expect(harness.server.seen.filter(({ path }) => path.includes('secrets'))).to.deep.equal([]);
  });

  it('of one namespace reports nothing of the networks and leases of others, also for administrators', async () => {
    const config = '{"name": "acquisition", "type": "bridge", "ipam": {"type": "Holdfast"}}';
    const nadOf = (namespace: string) => ({
      metadata: { namespace, name: 'secret-project', creationTimestamp: '2020-01-01T00:00:00Z' },
      spec: { config },
    });
    const owner = { kind: 'Pod', namespace: 'rival', name: 'pod', uid: 'gone' };
    const lease = { metadata: { name: 'blue.1', creationTimestamp: '2020-01-01T00:00:00Z' }, spec: { owner } };
    serve({
      '/apis/k8s.cni.cncf.io/v1/network-attachment-definitions': () => ({
        body: { metadata: {}, items: [nadOf('rival'), nadOf('lab')] },
      }),
      [LEASES]: ({ query }) => ({ body: { metadata: {}, items: query.has('labelSelector') ? [] : [lease] } }),
    });
    const { missing } = await write(join(folder, 'bundle.tar.gz'), 'lab');
    expect(missing).to.deep.equal([]);
    execFileSync('tar', ['--extract', '--gzip', '--file', join(folder, 'bundle.tar.gz'), '--directory', folder]);
    for (const name of ['doctor', 'status']) {
      const report = await readFile(join(folder, FOLDER, `${name}.json`), 'utf8');
      expect(report).to.include('lab/secret-project').and.not.include('rival');
    }
  });

  it('has only those annotations of a VM and its template that concern networks', async () => {
    serve({ '/apis/kubevirt.io/v1/virtualmachines': () => ({ body: { metadata: {}, items: [VM] } }) });
    const { transport } = harness;
    const sources = { client: new Client(transport), transport, namespaces: new Set<string>() };
    const rest = { limits: BUNDLE_LIMITS, version: '0.1.0', time: '', showProgress: () => undefined };
    let text = '';
    for await (const file of collectBundle({}, new BundleNotes(), {}, { ...sources, ...rest }))
      if (file.path.includes('virtualmachines')) text += file.text;
    expect(text.match(/10\.0\.0\.5/g)).to.have.length(2);
    expect(text).not.to.include('licence');
  });

  it('has the newest lines of a log that is longer than its bound', async () => {
    const log = Array.from({ length: 1_000 }, (_, index) => `line ${index}\n`).join('');
    serve({
      [IN_SYSTEM]: () => ({ body: { metadata: {}, items: [POD] } }),
      [`${IN_SYSTEM}/holdfast-ipam-x/log`]: () => ({ body: log }),
    });
    const { transport } = harness;
    const sources = { client: new Client(transport), transport, namespaces: new Set(['holdfast-system']) };
    const limits = { ...BUNDLE_LIMITS, logBytes: 20 };
    const rest = { limits, version: '0.1.0', time: '', showProgress: () => undefined };
    const notes = new BundleNotes();
    const logs: string[] = [];
    for await (const { path, text } of collectBundle({}, notes, {}, { ...sources, ...rest }))
      if (path[0] === 'logs') logs.push(text);
    expect(logs, 'whole lines').to.deep.equal(['line 998\nline 999\n', 'line 998\nline 999\n']);
    expect(notes.lines[0]).to.match(/^CUT {6}logs\/.*\/ipam.log: only the last 20 bytes$/);
  });

  it('names what the user may not read, and has the rest', async () => {
    serve({ '/api/v1/nodes': () => forbidden('nodes'), [LEASES]: () => ({ status: 404, body: {} }) });
    const missing = (await write()).missing.join('\n');
    expect(missing).to.include('REFUSED  nodes: user "eve" may not list nodes in the whole cluster');
    expect(missing).to.include('ABSENT   addressleases');
  });

  it('is written for a user who may read nothing, and says so to its caller', async () => {
    harness.connect(({ method }) => (method === 'GET' ? forbidden('things') : { body: { metadata: {} } }));
    const { missing, isUnchecked } = await write();
    expect(isUnchecked).to.equal(true);
    expect(missing.join('\n')).to.include('REFUSED  status and doctor: user "eve" may not list things');
    expect((await stat(join(folder, 'bundle.tar.gz'))).size).to.be.greaterThan(0);
  });

  it('has its name only when it is complete, and replaces what an interrupted run left', async () => {
    const seen: string[][] = [];
    serve({
      [LEASES]: () => {
        seen.push(readdirSync(folder));
        return { body: { metadata: {}, items: [] } };
      },
    });
    await writeFile(join(folder, 'bundle.tar.gz.partial'), 'half an archive');
    await write();
    expect(seen.at(-1)).to.deep.equal(['bundle.tar.gz.partial']);
    expect(readdirSync(folder)).to.deep.equal(['bundle.tar.gz']);
    execFileSync('tar', ['--list', '--gzip', '--file', join(folder, 'bundle.tar.gz')]);
  });

  it('does not replace a file, and says so', async () => {
    serve({});
    const file = join(folder, 'mine');
    await writeFile(file, 'precious');
    const error = await write(file).then(
      () => undefined,
      (thrown: unknown) => thrown as Error,
    );
    expect(error?.message).to.include('exists: remove it, or name another file');
    expect(await readFile(file, 'utf8')).to.equal('precious');
  });

  describe('of many objects', () => {
    const PAGES = 40;

    function collect(limits: Partial<typeof BUNDLE_LIMITS>, notes = new BundleNotes()) {
      let page = 0;
      serve({
        [LEASES]: () => ({ body: { items: leases(500), metadata: ++page < PAGES ? { continue: String(page) } : {} } }),
      });
      const { transport } = harness;
      const client = new Client(transport);
      const sources = { client, transport, namespaces: new Set<string>(), showProgress: () => undefined };
      const about = { limits: { ...BUNDLE_LIMITS, ...limits }, version: '0.1.0', time: '' };
      return { notes, pagesRead: () => page, files: collectBundle({}, notes, {}, { ...sources, ...about }) };
    }

    async function filesOf(files: AsyncIterable<ArchivedFile>): Promise<ArchivedFile[]> {
      const all: ArchivedFile[] = [];
      for await (const file of files) all.push(file);
      return all;
    }

    it('reads a page only after the one before was written, so that memory stays bounded', async () => {
      const { files, pagesRead } = collect({});
      for (let count = 1; count <= 5; count++) {
        await files.next();
        expect(pagesRead()).to.equal(count);
      }
      await files.return();
    });

    it('has all 20000 leases', async () => {
      const { files, notes } = collect({});
      const lists = (await filesOf(files)).filter(({ path }) => path.includes('addressleases'));
      const items = lists.flatMap(({ text }) => (JSON.parse(text) as { items: unknown[] }).items);
      expect(items).to.have.length(20_000);
      expect(notes.lines).to.deep.equal([]);
    });

    it('ends at the bounds, and says what was cut', async () => {
      const few = collect({ objectsPerKind: 700 });
      await filesOf(few.files);
      expect(few.notes.lines).to.deep.equal(['CUT      addressleases: only the first 700 objects']);
      const small = collect({ totalBytes: 100_000 });
      const last = (await filesOf(small.files)).at(-1);
      expect(last?.path).to.deep.equal(['README.txt']);
      expect(last?.text).to.include('the bundle reached 100000 bytes');
    });
  });
});
