import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT } from '../../../test/source-files.js';
import { readInstallation } from '../../holdfast/manifests.js';
import { PLUGIN_FILE } from '../../network/open-pod-networks.js';
import { holdfastImage } from './images.js';

describe("Holdfast's image for real nodes", () => {
  let folder: string;
  let tree: string;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-images-'));
    tree = join(folder, 'tree');
    const built = [PLUGIN_FILE, PLUGIN_FILE.replace(/-\w+$/, '-other')];
    for (const name of ['cni', 'packets']) await mkdir(join(tree, 'dist', name), { recursive: true });
    for (const name of built) await writeFile(join(tree, 'dist', 'cni', name), '');
    for (const name of built)
      await writeFile(join(tree, 'dist', 'packets', name.replace('holdfast', 'holdfast-packets')), '');
    for (const name of ['Dockerfile', 'package.json', 'LICENSE'])
      await writeFile(join(tree, name), await readFile(join(ROOT, name)));
  });

  after(() => rm(folder, { recursive: true, force: true }));

  const imageIn = (name: string) => holdfastImage(join(folder, name), { tree, node: process.execPath });

  it("has the Dockerfile's entry point, user and working directory", async () => {
    const { config } = await imageIn('config');
    const dockerfile = await readFile(join(ROOT, 'Dockerfile'), 'utf8');
    expect(dockerfile).to.include(`\nUSER ${config.User!}\n`).and.include(`\nWORKDIR ${config.WorkingDir!}\n`);
    const entrypoint = dockerfile.split('\nENTRYPOINT ')[1]!.split('\n')[0]!;
    expect(config.Entrypoint).to.deep.equal(JSON.parse(entrypoint));
  });

  it('has the name that the manifests use', async () => {
    const { name } = await imageIn('name');
    const text = JSON.stringify(await readInstallation());
    const images = new Set([...text.matchAll(/"image":"([^"]+)"/g)].map(([, image]) => image));
    expect([...images].map((image) => `docker.io/library/${image!}`)).to.deep.equal([name]);
  });

  it('has the build for one architecture, with holdfast-packets at its path for all architectures', async () => {
    await imageIn('build');
    const files = await readdir(join(folder, 'build', 'opt', 'holdfast'), { recursive: true });
    const programs = [`dist/cni/${PLUGIN_FILE}`, 'dist/cni/holdfast', 'dist/packets/holdfast-packets'];
    expect(files).to.have.members(['LICENSE', 'package.json', 'dist', 'dist/cni', 'dist/packets', ...programs]);
  });

  it('has Node.js with the libraries that it needs, and what programs expect of a distribution', async () => {
    const { files } = await imageIn('base');
    expect(files).to.deep.include({ source: process.execPath, target: '/nodejs/bin/node' });
    const targets = files.map(({ target }) => target);
    expect(targets).to.include.members(['/etc/passwd', '/etc/group', '/etc/nsswitch.conf', '/tmp']);
    expect(targets.filter((target) => /\/(ld-linux|libc\.so)/.test(target))).to.have.length(2);
  });
});
