import { chmod, mkdir, mkdtemp, open, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { installPlugin } from './install.js';

describe('the installation of the plugin', () => {
  let folder: string;
  let from: string;
  let binDir: string;
  let target: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
    [from, binDir] = [join(folder, 'dist'), join(folder, 'bin')];
    target = join(binDir, 'holdfast');
    await mkdir(from);
    await mkdir(binDir);
    await writeFile(join(from, 'holdfast-linux-amd64'), 'amd64');
    await writeFile(join(from, 'holdfast-linux-arm64'), 'arm64');
  });
  afterEach(() => rm(folder, { recursive: true }));

  it("installs the executable of the node's architecture and no other file", async () => {
    expect(await installPlugin({ from, binDir, arch: 'x64' })).to.equal(true);
    expect(await readFile(target, 'utf8')).to.equal('amd64');
    expect((await stat(target)).mode & 0o777).to.equal(0o755);
    expect(await readdir(binDir)).to.deep.equal(['holdfast']);
    await installPlugin({ from, binDir, arch: 'arm64' });
    expect(await readFile(target, 'utf8')).to.equal('arm64');
  });

  it('leaves a correct binary alone, and replaces another one atomically', async () => {
    await installPlugin({ from, binDir, arch: 'x64' });
    const { ino } = await stat(target);
    expect(await installPlugin({ from, binDir, arch: 'x64' })).to.equal(false);
    expect((await stat(target)).ino).to.equal(ino);
    await chmod(target, 0o600);
    expect(await installPlugin({ from, binDir, arch: 'x64' })).to.equal(true);
    await writeFile(join(from, 'holdfast-linux-amd64'), 'newer');
    const running = await open(target);
    expect(await installPlugin({ from, binDir, arch: 'x64' })).to.equal(true);
    expect(await readFile(target, 'utf8')).to.equal('newer');
    expect(await running.readFile('utf8')).to.equal('amd64');
    await running.close();
  });

  const failures: { name: string; change: () => Promise<void> | void; arch?: string; says: string }[] = [
    { name: 'the architecture is not supported', change: () => undefined, arch: 's390x', says: 's390x' },
    { name: 'the image lacks the binary', change: () => rm(join(from, 'holdfast-linux-amd64')), says: 'linux-amd64' },
    { name: 'the folder does not exist', change: () => rm(binDir, { recursive: true }), says: 'bin' },
    { name: "a folder has the plugin's name", change: () => mkdir(target), says: 'bin/holdfast' },
  ];
  for (const { name, change, arch = 'x64', says } of failures) {
    it(`fails if ${name}, and leaves no file behind`, async () => {
      await change();
      const failure = await installPlugin({ from, binDir, arch }).catch((error: unknown) => (error as Error).message);
      expect(failure).to.include('--cni-bin-dir').and.to.include(says);
      const left = await readdir(folder, { recursive: true });
      expect(left.filter((path) => path.includes('.holdfast'))).to.deep.equal([]);
    });
  }
});
