import { mkdir, mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import type { Logger } from '../../../kube/log.js';
import { runInstallation } from './install-command.js';

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
