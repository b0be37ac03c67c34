import { execFileSync } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse } from 'yaml';
import { nodePackages } from '../test/image/node.js';
import { ROOT } from '../test/source-files.js';
import { cutRelease, notesOf, problemsOfChangelog, withAbsoluteLinks } from './changelog.js';
import { baseImagesOf, imageBuild } from './image.js';
import { krewManifest } from './krew.js';
import { PLUGIN_PLATFORMS } from './platforms.js';
import { readSettings } from './settings.js';
import { type TreeState, listFiles, problemsOfTree, readTree } from './tree.js';
import { readVersion, withVersion } from './version.js';

const CHANGELOG = `# Changelog

## Unreleased

### Added

- A thing: see [pools](docs/how-to/pools.md#a).

## 1.0.0 - 2026-01-02

### Fixed

- A bug.
`;

describe('the settings of a release', () => {
  const invalid: { env: Record<string, string>; message: string }[] = [
    { env: {}, message: 'VERSION is missing: make release VERSION=1.2.3' },
    { env: { VERSION: 'v1.2.3' }, message: 'must not begin with "v"' },
    { env: { VERSION: '1.2' }, message: 'VERSION 1.2 is not a semantic version' },
    { env: { VERSION: '1.02.3' }, message: 'VERSION 1.02.3 is not a semantic version' },
    { env: { VERSION: '1.2.3+4' }, message: 'build metadata' },
    { env: { VERSION: '1.2.3', IMAGE: 'a/holdfast:1' }, message: 'IMAGE is "a/holdfast:1"' },
    { env: { VERSION: '1.2.3', REPOSITORY: 'a/b' }, message: 'REPOSITORY is "a/b"' },
    { env: { VERSION: '1.2.3', WITH_IMAGE: 'maybe' }, message: 'WITH_IMAGE is "maybe"' },
    { env: { VERSION: '1.2.3', PLUGIN_PLATFORMS: 'linux/amd64' }, message: 'set DRAFT=1' },
    { env: { VERSION: '1.2.3', DRAFT: '1', PLUGIN_PLATFORMS: 'linux/x64' }, message: 'one or more of linux/amd64, ' },
  ];
  for (const { env, message } of invalid) {
    it(`are refused if they are ${JSON.stringify(env)}`, () => {
      expect(() => readSettings(env)).to.throw(message);
    });
  }

  it('accept a registry with a port, and make the name of an image lower-case', () => {
    const { version, imageName } = readSettings({
      VERSION: '1.2.3-rc.1',
      IMAGE: 'registry.example.com:5000/Team/holdfast',
    });
    expect({ version, imageName }).to.deep.equal({
      version: '1.2.3-rc.1',
      imageName: 'registry.example.com:5000/team/holdfast',
    });
  });
});

describe('the platforms of the kubectl plugin', () => {
  const archives = PLUGIN_PLATFORMS.map((platform) => ({
    ...platform,
    file: `${platform.os}-${platform.arch}.tar.gz`,
    program: 'kubectl-holdfast',
    sha256: '',
  }));
  const manifest = parse(krewManifest(archives, readSettings({ VERSION: '1.2.3' }))) as {
    spec: { platforms: { selector: { matchLabels: Record<string, string> } }[] };
  };

  it('are one entry each in the manifest for krew, and Windows on arm64 gets that for amd64', () => {
    const selected = manifest.spec.platforms.map(({ selector }) => Object.values(selector.matchLabels).join('/'));
    expect(selected).to.deep.equal(['linux/amd64', 'linux/arm64', 'darwin/amd64', 'darwin/arm64', 'windows']);
  });

  it('each have a Node.js of the same version', async () => {
    const packages = await nodePackages();
    expect([...packages.keys()]).to.have.members(PLUGIN_PLATFORMS.map(({ node }) => node));
    expect(new Set([...packages.values()].map(({ version }) => version)).size).to.equal(1);
  });
});

describe('a tree', () => {
  const ready: TreeState = {
    commit: 'aaa',
    time: 0,
    changed: [],
    tagged: undefined,
    previous: { tag: 'v0.9.0', commit: 'old' },
    version: '1.0.0',
    changelog: CHANGELOG,
  };

  it('can be released if it is clean and has the version and its changes', () => {
    expect(problemsOfTree(ready, '1.0.0', 'old')).to.deep.equal([]);
    expect(problemsOfTree({ ...ready, tagged: 'aaa' }, '1.0.0', 'old')).to.deep.equal([]);
    expect(problemsOfTree({ ...ready, previous: undefined }, '1.0.0', 'old')).to.deep.equal([]);
    expect(problemsOfTree({ ...ready, version: '1.1.0-rc.1' }, '1.1.0-rc.1', 'old')).to.deep.equal([]);
  });

  const unready: { change: Partial<TreeState>; message: string }[] = [
    { change: { changed: [' M a.ts'] }, message: 'files differ from the commit ( M a.ts' },
    { change: { tagged: 'bbb' }, message: 'the tag v1.0.0 is on commit bbb, not on aaa' },
    {
      change: { previous: { tag: 'v0.9.1', commit: 'newer' } },
      message: 'begin with commit old, and the previous release v0.9.1 is newer: write that into PREVIOUS',
    },
    { change: { version: '0.9.0' }, message: 'package.json says 0.9.0: run `make version VERSION=1.0.0`' },
    { change: { changelog: '## Unreleased\n' }, message: 'CHANGELOG.md has no text for 1.0.0: run' },
  ];
  for (const { change, message } of unready) {
    it(`is refused: ${message}`, () => {
      const problems = problemsOfTree({ ...ready, ...change }, '1.0.0', 'old');
      expect(problems).to.have.length(1);
      expect(problems[0]).to.include(message);
    });
  }

  it('names its own tag, and the newest release before it in its history', async () => {
    const root = await mkdtemp(join(tmpdir(), 'holdfast-tree-'));
    const git = (...args: string[]) =>
      execFileSync('git', ['-C', root, '-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
        encoding: 'utf8',
      }).trim();
    try {
      git('init', '--quiet');
      await writeFile(join(root, 'package.json'), '{ "version": "1.10.0" }');
      await writeFile(join(root, 'CHANGELOG.md'), '');
      git('add', '.');
      for (const tag of ['v1.9.0', 'v1.10.0-rc.1', 'v1.10.0']) {
        git('commit', '--quiet', '--allow-empty', `--message=${tag}`);
        git('tag', '--annotate', '--message', tag, tag);
      }
      const previous = { tag: 'v1.9.0', commit: git('rev-parse', 'v1.9.0^{commit}') };
      const newest = git('rev-parse', 'HEAD');
      expect(await readTree(root, '1.10.0')).to.deep.include({ tagged: newest, previous });
      const released = { tag: 'v1.10.0', commit: newest };
      expect(await readTree(root, '1.11.0')).to.deep.include({ tagged: undefined, previous: released });
      git('checkout', '--quiet', 'v1.9.0');
      expect(await readTree(root, '1.9.0')).to.deep.include({ tagged: previous.commit, previous: undefined });
    } finally {
      await rm(root, { recursive: true });
    }
  });

  it('has its version in every place that a new version changes, and nowhere else', async () => {
    const from = await readVersion(ROOT);
    const changed: string[] = [];
    const left: string[] = [];
    for (const path of listFiles(ROOT)) {
      if (/\.(test\.ts|png)$|^(docs\/adr|e2e|bench|release|test)\//.test(path)) continue;
      const text = await readFile(join(ROOT, path), 'utf8').catch(() => ''); // a link to a folder
      const set = withVersion(path, text, { from, to: '7.7.7' });
      if (set !== text) changed.push(path);
      if (new RegExp(`holdfast:${from.replaceAll('.', '\\.')}`).test(set)) left.push(path);
    }
    expect(changed).to.include.members([
      ...['manifests/base/ipam/agent/daemonset.yaml', 'manifests/chart/Chart.yaml'],
      ...['package-lock.json', 'package.json', 'process/version.ts'],
    ]);
    expect(left).to.deep.equal([]);
    const lock = JSON.parse(
      withVersion('package-lock.json', await readFile(join(ROOT, 'package-lock.json'), 'utf8'), { from, to: '7.7.7' }),
    ) as { version: string; packages: Record<string, { version: string }> };
    expect([lock.version, lock.packages['']?.version]).to.deep.equal(['7.7.7', '7.7.7']);
    expect(Object.values(lock.packages).filter(({ version }) => version === '7.7.7')).to.have.length(1);
  });
});

describe('the changelog', () => {
  it('has the form of Keep a Changelog', async () => {
    expect(problemsOfChangelog(await readFile(join(ROOT, 'CHANGELOG.md'), 'utf8'))).to.deep.equal([]);
    expect(problemsOfChangelog(CHANGELOG)).to.deep.equal([]);
  });

  const deviations: { from: string; to: string; problem: string }[] = [
    { from: '## Unreleased', to: '## Next', problem: 'the first section is not "## Unreleased"' },
    { from: ' - 2026-01-02', to: '', problem: '1.0.0 has no date' },
    { from: '## 1.0.0', to: '## One', problem: '"One" is not a version' },
    { from: '### Fixed', to: '### Repaired', problem: '1.0.0 has the headings Repaired' },
    { from: '\n- A bug.\n', to: '', problem: '1.0.0 has an empty heading' },
  ];
  for (const { from, to, problem } of deviations) {
    it(`is checked: ${problem}`, () => {
      expect(problemsOfChangelog(CHANGELOG.replace(from, to)).join()).to.include(problem);
    });
  }

  it('gives a version its section, and a pre-release what is not released yet', () => {
    expect(notesOf(CHANGELOG, '1.0.0')).to.equal('### Fixed\n\n- A bug.');
    expect(notesOf(CHANGELOG, '2.0.0-rc.1')).to.include('A thing');
    expect(notesOf(CHANGELOG, '2.0.0')).to.equal(undefined);
  });

  it('gets an empty section for later changes when a version is closed, once', () => {
    const cut = cutRelease(CHANGELOG, '1.1.0', '2026-02-03');
    expect(cut).to.include('## Unreleased\n\n## 1.1.0 - 2026-02-03\n\n### Added');
    expect(problemsOfChangelog(cut)).to.deep.equal([]);
    expect(cutRelease(cut, '1.1.0', '2026-03-03')).to.equal(cut);
  });

  it('becomes notes with links that work outside of the tree', () => {
    expect(withAbsoluteLinks('[a](docs/a.md#b) [c](https://d.e)', 'https://git.example.com/x', '1.0.0')).to.equal(
      '[a](https://git.example.com/x/blob/v1.0.0/docs/a.md#b) [c](https://d.e)',
    );
  });
});

describe('the build of the image', () => {
  it('names base images by digest, and gives the same bytes for the same commit', () => {
    expect(baseImagesOf('ARG NODE_IMAGE=node:26\nFROM ${NODE_IMAGE}\nARG VERSION=0')).to.deep.equal({
      NODE_IMAGE: 'node:26',
    });
    const source = { tree: '/tree', commit: 'abc', time: 86_400, bases: { NODE_IMAGE: 'node:26@sha256:0' } };
    const command = imageBuild(source, readSettings({ VERSION: '1.2.3' }), '/out/image.tar');
    expect(command).to.include.members([
      '--platform=linux/amd64,linux/arm64',
      '--tag=holdfast:1.2.3',
      '--build-arg=NODE_IMAGE=node:26@sha256:0',
      '--build-arg=CREATED=1970-01-02T00:00:00Z',
      '--build-arg=SOURCE_DATE_EPOCH=86400',
      '--provenance=false',
      '--output=type=oci,dest=/out/image.tar,rewrite-timestamp=true',
    ]);
  });
});
