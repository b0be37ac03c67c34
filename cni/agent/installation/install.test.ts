import { execFileSync } from 'node:child_process';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Logger } from '../../../kube/log.js';
import { installPlugin, runInstallation } from './install.js';

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

  function install(arch: string): Promise<boolean> {
    return installPlugin({ from, directory: { path: binDir, hostPath: '/opt/cni/bin' }, arch });
  }

  it("installs the executable of the node's architecture and no other file", async () => {
    expect(await install('x64')).to.equal(true);
    expect(await readFile(target, 'utf8')).to.equal('amd64');
    expect((await stat(target)).mode & 0o777).to.equal(0o755);
    expect(await readdir(binDir)).to.deep.equal(['holdfast']);
    await install('arm64');
    expect(await readFile(target, 'utf8')).to.equal('arm64');
  });

  it('leaves a correct binary alone, and replaces another one atomically', async () => {
    await install('x64');
    const { ino } = await stat(target);
    expect(await install('x64')).to.equal(false);
    expect((await stat(target)).ino).to.equal(ino);
    await chmod(target, 0o600);
    expect(await install('x64')).to.equal(true);
    await writeFile(join(from, 'holdfast-linux-amd64'), 'newer');
    const running = await open(target);
    expect(await install('x64')).to.equal(true);
    expect(await readFile(target, 'utf8')).to.equal('newer');
    expect(await running.readFile('utf8')).to.equal('amd64');
    await running.close();
  });

  it('removes the files of interrupted installations, and no other hidden files', async () => {
    await writeFile(join(binDir, '.holdfast-0123456789ab'), 'half a pl');
    await writeFile(join(binDir, '.holdfast-notes'), 'somebody else wrote this');
    await install('x64');
    expect(await readdir(binDir)).to.have.members(['holdfast', '.holdfast-notes']);
  });

  const strange: { name: string; make: () => unknown; needsRoot?: true }[] = [
    { name: 'a file of another user', make: () => put(target).then(() => chown(target, 997, 997)), needsRoot: true },
    { name: 'a link', make: () => put(join(binDir, 'other')).then(() => symlink('other', target)) },
    { name: 'a pipe', make: () => execFileSync('mkfifo', ['-m', '755', target]) },
    { name: 'a file of 3 GiB', make: () => put(target).then(() => truncate(target, 3 * 2 ** 30)) },
    {
      name: 'our file, beside a folder with a temporary name',
      make: () => mkdir(join(binDir, '.holdfast-0123456789ab')),
    },
  ];
  for (const { name, make, needsRoot = false } of strange) {
    it(`replaces ${name}`, async function () {
      if (needsRoot && process.getuid?.() !== 0) this.skip();
      await make();
      expect(await install('x64')).to.equal(true);
      const { size, uid } = await lstat(target);
      expect([size, uid]).to.deep.equal(['amd64'.length, process.getuid?.()]);
    });
  }

  /** A file with the right content. */
  function put(path: string): Promise<void> {
    return writeFile(path, 'amd64', { mode: 0o755 });
  }

  const failures: { name: string; change: () => Promise<void> | void; arch?: string; says: string }[] = [
    { name: 'the architecture is not supported', change: () => undefined, arch: 's390x', says: 's390x' },
    { name: 'the image lacks the binary', change: () => rm(join(from, 'holdfast-linux-amd64')), says: 'linux-amd64' },
    { name: 'the folder does not exist', change: () => rm(binDir, { recursive: true }), says: 'ENOENT' },
    { name: "a folder has the plugin's name", change: () => mkdir(target), says: 'EISDIR' },
  ];
  for (const { name, change, arch = 'x64', says } of failures) {
    it(`fails if ${name}, and leaves no file behind`, async () => {
      await change();
      const failure = await install(arch).catch((error: unknown) => (error as Error).message);
      expect(failure).to.include('as /opt/cni/bin/holdfast on the node').and.to.include(says);
      const left = await readdir(folder, { recursive: true });
      expect(left.filter((path) => path.includes('.holdfast'))).to.deep.equal([]);
    });
  }
});

describe('the command install-plugin', () => {
  let root: string;
  let path: string;
  let logged: string[];

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'holdfast-'));
    path = join(root, 'bin');
    await mkdir(path);
    for (const each of ['amd64', 'arm64']) await writeFile(join(root, `holdfast-linux-${each}`), 'plugin');
    logged = [];
  });
  afterEach(() => rm(root, { recursive: true }));

  function run(): Promise<number> {
    const write = (_fields: object, message: string) => void logged.push(message);
    const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
    return runInstallation({ cniBinDir: path, cniBinHostDir: '/opt/cni/bin', logLevel: 'info' }, log, root);
  }

  it('installs the plugin, and says whether it was installed before', async () => {
    expect(await run()).to.equal(0);
    expect(await run()).to.equal(0);
    expect(await readFile(join(path, 'holdfast'), 'utf8')).to.equal('plugin');
    expect(logged).to.deep.equal(['CNI plugin installed', 'CNI plugin is already installed']);
  });

  it('fails if it cannot install the plugin, so that the kubelet runs it again', async () => {
    await rm(path, { recursive: true });
    expect(await run()).to.equal(1);
    expect(logged[0]).to.include('cannot install the CNI plugin as /opt/cni/bin/holdfast on the node: ENOENT');
  });

  it('lets the agent start if the plugin of another version is present and cannot be replaced', async () => {
    await writeFile(join(path, 'holdfast'), 'older', { mode: 0o755 });
    await rm(join(root, 'holdfast-linux-amd64'));
    await rm(join(root, 'holdfast-linux-arm64'));
    expect(await run()).to.equal(0);
    expect(logged[0]).to.include('ENOENT').and.to.include('The agent starts with the plugin that is present');
    expect(await readdir(path)).to.deep.equal(['holdfast']);
  });
});
