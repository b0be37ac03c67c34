import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtemp, readFile, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Spec, Validation } from '@cyclonedx/cyclonedx-library';
import { expect } from 'chai';
import { ROOT } from '../source-files.js';
import { buildImage } from './build.js';
import { ImageRoot, reasonAgainstContainers } from './container.js';
import { readDockerfile } from './dockerfile.js';

// JavaScript without types, because Node.js runs it as it is
const { licenceOf, noticesOf } = (await import(pathToFileURL(join(ROOT, 'build', 'third-parties.js')).href)) as {
  licenceOf: (text: string) => object;
  noticesOf: (components: readonly object[]) => string;
};

const { PARTS } = (await import(pathToFileURL(join(ROOT, 'build', 'parts.js')).href)) as { PARTS: object };

/** A component of the SBOM. */
interface Component {
  readonly group?: string;
  readonly name: string;
  readonly version: string;
  readonly purl: string;
}

const ARCHITECTURE = process.arch === 'arm64' ? 'arm64' : 'amd64';
const OTHER = ARCHITECTURE === 'arm64' ? 'amd64' : 'arm64';
const HOLDFAST = join('opt', 'holdfast');
const CLI = '/opt/holdfast/dist/kubectl-holdfast.cjs';
const REASON = reasonAgainstContainers();

describe('The container image', function () {
  this.timeout(60_000);
  let folder: string;
  let root: string;
  let image: ImageRoot;
  let version: string;
  let files: readonly string[];

  before(async function () {
    this.timeout(10 * 60_000); // the first run compiles BuildKit's frontend and the CNI plugin
    const dockerfile = await readDockerfile(join(ROOT, 'Dockerfile'));
    folder = await mkdtemp(join(tmpdir(), 'holdfast-image-'));
    root = await buildImage(dockerfile, folder, ARCHITECTURE);
    files = await filesIn(root);
    ({ version } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { version: string });
    if (REASON === undefined) image = await ImageRoot.create(root, dockerfile.images[`linux/${ARCHITECTURE}`]!);
  });

  after(() => rm(folder, { recursive: true, force: true }));

  async function filesIn(path: string): Promise<string[]> {
    const entries = await readdir(path, { recursive: true, withFileTypes: true });
    const found = entries.filter((entry) => entry.isFile());
    return found.map((entry) => join(entry.parentPath, entry.name).slice(path.length + 1)).sort();
  }

  async function checksums(path: string): Promise<[string, string][]> {
    const names = (await filesIn(path)).filter((name) => !/^(cni|packets)\//.test(name));
    const hash = async (name: string) =>
      createHash('sha256')
        .update(await readFile(join(path, name)))
        .digest('hex');
    return Promise.all(names.map(async (name): Promise<[string, string]> => [name, await hash(name)]));
  }

  it('has the executable with a file for each process, the kubectl plugin, the Go programs of its architecture, licences and an SBOM', () => {
    expect(files).to.deep.equal(
      [
        'LICENSE',
        'package.json',
        'dist/holdfast.js',
        ...[...Object.keys(PARTS), 'kubeconfig', 'kubectl-holdfast', 'node-forge', 'yaml'].map(
          (name) => `dist/${name}.cjs`,
        ),
        `dist/cni/holdfast-linux-${ARCHITECTURE}`,
        'dist/packets/holdfast-packets',
        'dist/THIRD-PARTY-LICENSES.txt',
        'dist/sbom.cdx.json',
      ]
        .map((path) => join(HOLDFAST, path))
        .sort(),
    );
  });

  it('is built to the same bytes again, apart from the Go programs of another architecture', async () => {
    const built = join(folder, 'build');
    const { status, stderr } = spawnSync('node', ['build.js', OTHER], { cwd: built, encoding: 'utf8' });
    expect(status, stderr).to.equal(0);
    expect(await readdir(join(built, 'dist', 'cni'))).to.deep.equal([`holdfast-linux-${OTHER}`]);
    expect(await readdir(join(built, 'dist', 'packets'))).to.deep.equal([`holdfast-packets-linux-${OTHER}`]);
    expect(await checksums(join(built, 'dist'))).to.deep.equal(await checksums(join(root, HOLDFAST, 'dist')));
  });

  async function sbom(): Promise<{ text: string; components: Component[] }> {
    const text = await readFile(join(root, HOLDFAST, 'dist', 'sbom.cdx.json'), 'utf8');
    return { text, ...(JSON.parse(text) as { components: Component[] }) };
  }

  it('has an SBOM that the schema of CycloneDX accepts', async () => {
    const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
    const { text } = await sbom();
    expect(await validator.validate(text)).to.equal(null);
    expect(await validator.validate(text.replace('"components"', '"parts"'))).not.to.equal(null);
  });

  it("has an SBOM that lists the bundled packages, Go's library and modules of Go, and no tool of the build", async () => {
    const { components } = await sbom();
    const names = components.map(({ group, name }) => (group === undefined ? name : `${group}/${name}`));
    const { dependencies } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
    };
    expect(names).to.include.members([...Object.keys(dependencies), 'std', 'github.com/insomniacslk/dhcp']);
    expect(names).not.to.include('esbuild');
    expect(components.filter(({ purl }) => !/^pkg:(npm|golang)\//.test(purl))).to.deep.equal([]);
  });

  it('has the licence texts of everything in the SBOM', async () => {
    const text = await readFile(join(root, HOLDFAST, 'dist', 'THIRD-PARTY-LICENSES.txt'), 'utf8');
    const { components } = await sbom();
    for (const { group, name, version: its } of components) {
      expect(text).to.include(`${group === undefined ? '' : `${group}/`}${name} ${its} (`);
    }
  });

  const evidence = { licenses: [{ license: { text: { content: 'Copyright', encoding: 'utf8' } } }] };
  const licensed = (expression: string) => ({ name: 'p', version: '1', licenses: [{ expression }], evidence });

  it('cannot be built with a package whose licence is missing or not allowed', () => {
    const rejected = [
      [{ ...licensed('MIT'), evidence: undefined }, 'p 1 has no licence text'],
      [{ ...licensed('MIT'), licenses: undefined }, 'p 1 declares no licence'],
      [licensed('GPL-3.0-only'), 'p 1 has the licence GPL-3.0-only'],
      [licensed('MIT AND AGPL-3.0-only'), 'p 1 has the licence MIT AND AGPL-3.0-only'],
      [licensed('SEE LICENSE IN EULA'), 'p 1 has the licence SEE LICENSE IN EULA'],
    ] as const;
    for (const [component, message] of rejected) expect(() => noticesOf([component])).to.throw(message);
  });

  it('cannot be built with a Go module whose licence is not recognized', () => {
    expect(licenceOf('GNU GENERAL PUBLIC LICENSE')).to.deep.equal({ name: 'unknown' });
    const component = { name: 'm', version: '1', licenses: [{ license: { name: 'unknown' } }], evidence };
    expect(() => noticesOf([component])).to.throw('m 1 has the licence unknown');
  });

  it('may be built with a package that offers an allowed licence among others', () => {
    expect(noticesOf([licensed('(BSD-3-Clause OR GPL-2.0-only)')])).to.include('Copyright');
  });

  describe(REASON ?? 'run with its own files only, as its user and read-only', function () {
    before(function () {
      if (REASON !== undefined) this.skip();
    });

    it('prints its version', async () => {
      const { stdout, stderr } = await image.run({ args: ['--version'] });
      expect(stdout, stderr).to.equal(`${version}\n`);
    });

    it('lists its processes, if it is run without arguments', async () => {
      const { stdout, stderr } = await image.run({ args: ['--help'] });
      for (const name of ['controller', 'webhook', 'ipam', 'agent', 'capacity', 'all'])
        expect(stdout, stderr).to.include(name);
    });

    it('has the kubectl plugin', async () => {
      const { stdout, stderr } = await image.run({ entrypoint: ['/nodejs/bin/node', CLI], args: ['--version'] });
      expect(stdout, stderr).to.equal(`${version}\n`);
    });

    it('has a CNI plugin that runs without a C library', async () => {
      const plugin = '/opt/holdfast/dist/cni/holdfast'; // a link to that of the architecture
      const { stdout, stderr } = await image.run({ entrypoint: [plugin], args: [] });
      expect(stdout + stderr).to.include('CNI_COMMAND');
    });

    it('has a program for packets that runs without a C library', async () => {
      const program = '/opt/holdfast/dist/packets/holdfast-packets';
      const { stdout, stderr } = await image.run({ entrypoint: [program], args: ['extra'] });
      expect(stdout + stderr).to.include('unexpected argument');
    });

    it('runs as user 1000 without capabilities, and cannot write', async () => {
      const script = `
        const { readFileSync, writeFileSync } = require('node:fs');
        const status = readFileSync('/proc/self/status', 'utf8');
        const capabilities = status.split('\\n').filter((line) => line.startsWith('Cap')).map((line) => line.split('\\t')[1]);
        const attempts = ['/new', '/opt/holdfast/dist/holdfast.js', '/tmp/new'].map((path) => {
          try { writeFileSync(path, ''); return 'written'; } catch (error) { return error.code; }
        });
        console.log(JSON.stringify({ user: process.getuid(), capabilities: [...new Set(capabilities)], attempts }));
      `;
      const { stdout, stderr } = await image.run({ entrypoint: ['/nodejs/bin/node', '-e', script], args: [] });
      expect(JSON.parse(stdout || '{}'), stderr).to.deep.equal({
        user: 1000,
        capabilities: ['0000000000000000'],
        attempts: ['EROFS', 'EROFS', 'ENOENT'],
      });
    });
  });
});
