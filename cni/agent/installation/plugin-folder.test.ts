import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Logger } from '../../../kube/log.js';
import { docsUrl } from '../../../process/docs-url.js';
import { ManualClock } from '../../../test/manual-clock.js';
import { PluginFolder } from './plugin-folder.js';

const HOST_PATH = '/opt/cni/bin';
const INTERVAL_MS = 10_000;

describe('the check of the directory of CNI plugins', () => {
  let root: string;
  let path: string;
  let clock: ManualClock;
  let folder: PluginFolder;
  let logged: string[];
  let usable: boolean[];

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'holdfast-'));
    path = join(root, 'bin');
    await mkdir(path);
    for (const each of ['amd64', 'arm64']) await writeFile(join(root, `holdfast-linux-${each}`), 'plugin');
    clock = new ManualClock(0);
    logged = [];
    usable = [];
    folder = createFolder();
  });
  afterEach(async () => {
    await folder.stop();
    await chmod(path, 0o755).catch(() => undefined);
    await rm(root, { recursive: true });
  });

  function createFolder(): PluginFolder {
    const write = (_fields: object, message: string) => void logged.push(message);
    const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
    const metrics = { setUsable: (isUsable: boolean) => usable.push(isUsable) };
    const directory = { path, hostPath: HOST_PATH };
    const required = [['multus', 'multus-shim'], ['bridge']];
    return new PluginFolder({ from: root, directory, arch: process.arch, required, clock, log, metrics });
  }

  function add(name: string): Promise<void> {
    return writeFile(join(path, name), name, { mode: 0o755 });
  }

  async function checkAgain(): Promise<void> {
    await clock.untilAlarmsSet();
    clock.advanceTo(clock.now() + INTERVAL_MS);
    await clock.untilAlarmsSet();
  }

  it('finds nothing wrong if Multus and the bridge plugin are there, and installs the plugin', async () => {
    expect(folder.problem()).to.include('has not been checked yet');
    await Promise.all([add('multus-shim'), add('bridge')]);
    await folder.start();
    expect(folder.problem()).to.equal(undefined);
    expect(await readFile(join(path, 'holdfast'), 'utf8')).to.equal('plugin');
    expect(usable).to.deep.equal([true]);
  });

  it('names what is missing and the directory on the node', async () => {
    await folder.start();
    expect(folder.problem())
      .to.include("the node's directory /opt/cni/bin has no multus or multus-shim and no bridge")
      .and.to.include(docsUrl('how-to/install.md#adapt-the-nodes'))
      .and.to.include('--cni-required-plugins');
    expect(folder.problem()).not.to.include(path);
    expect(usable).to.deep.equal([false]);
  });

  it('checks again while the agent runs, and logs only changes', async () => {
    await add('bridge');
    await folder.start();
    await checkAgain();
    await checkAgain();
    expect(folder.problem()).to.include('has no multus or multus-shim, so');
    await add('multus');
    await checkAgain();
    expect(folder.problem()).to.equal(undefined);
    await checkAgain();
    expect(usable).to.deep.equal([false, true]);
    expect(logged).to.have.length(3);
    expect(logged[0]).to.equal('CNI plugin installed');
    expect(logged[1]).to.include('has no multus');
    expect(logged[2]).to.equal('the directory of CNI plugins is usable');
  });

  it('replaces a plugin that was removed or written while the agent runs, and leaves it alone otherwise', async () => {
    const file = join(path, 'holdfast');
    await folder.start();
    const { ino } = await stat(file);
    await checkAgain();
    expect((await stat(file)).ino).to.equal(ino);
    await rm(file);
    await checkAgain();
    expect(await readFile(file, 'utf8')).to.equal('plugin');
    await writeFile(file, 'damage');
    await checkAgain();
    expect(await readFile(file, 'utf8')).to.equal('plugin');
  });

  it('says why the plugin cannot be installed, together with what else is missing', async () => {
    await add('multus');
    await mkdir(join(path, 'holdfast'));
    await folder.start();
    expect(folder.problem())
      .to.match(/^cannot install the CNI plugin as \/opt\/cni\/bin\/holdfast on the node: EISDIR/)
      .and.to.include("; the node's directory /opt/cni/bin has no bridge");
    await rm(join(path, 'holdfast'), { recursive: true });
    await symlink('/var/lib/rancher/k3s/data/1f5aa17d/bin/cni', join(path, 'bridge'));
    await checkAgain();
    expect(folder.problem()).to.equal(undefined);
  });

  it('reports a directory that does not exist, and is usable when it appears', async () => {
    await rm(path, { recursive: true });
    await folder.start();
    expect(folder.problem()).to.include('ENOENT').and.to.include('has no multus or multus-shim and no bridge');
    await mkdir(path);
    await Promise.all([add('multus'), add('bridge')]);
    await checkAgain();
    expect(folder.problem()).to.equal(undefined);
  });
});
