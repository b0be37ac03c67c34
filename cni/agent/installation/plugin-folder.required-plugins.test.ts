import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { findMissingPlugins } from './plugin-folder.js';

const HOST_PATH = '/var/lib/rancher/k3s/data/cni';

describe('the required plugins', () => {
  let folder: string;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function isFound(...alternatives: string[]): Promise<boolean> {
    return (await findMissingPlugins({ path: folder, hostPath: HOST_PATH }, [alternatives])).length === 0;
  }

  it('are executable files, and one of the alternatives is enough', async () => {
    await writeFile(join(folder, 'multus-shim'), '', { mode: 0o755 });
    const required = [['multus', 'multus-shim'], ['bridge', 'macvlan'], ['sriov']];
    const missing = await findMissingPlugins({ path: folder, hostPath: HOST_PATH }, required);
    expect(missing).to.deep.equal([['bridge', 'macvlan'], ['sriov']]);
  });

  it('are not directories or files without the right to execute', async () => {
    await mkdir(join(folder, 'bridge'));
    await writeFile(join(folder, 'multus'), '', { mode: 0o644 });
    expect(await isFound('bridge', 'multus')).to.equal(false);
  });

  it('may be links within the directory, relative or by their path on the node', async () => {
    await writeFile(join(folder, 'cni'), '', { mode: 0o755 });
    await symlink('cni', join(folder, 'bridge'));
    await symlink(`${HOST_PATH}/bridge`, join(folder, 'macvlan'));
    expect(await isFound('bridge')).to.equal(true);
    expect(await isFound('macvlan')).to.equal(true);
  });

  it('may be links out of the directory, whose targets a container cannot see', async () => {
    await symlink('/var/lib/rancher/k3s/data/1f5aa17d/bin/cni', join(folder, 'bridge'));
    await symlink('../1f5aa17d/bin/cni', join(folder, 'vlan'));
    expect(await isFound('bridge')).to.equal(true);
    expect(await isFound('vlan')).to.equal(true);
  });

  it('are not links to nothing within the directory, or in a circle', async () => {
    await symlink('absent', join(folder, 'bridge'));
    await symlink('second', join(folder, 'first'));
    await symlink('first', join(folder, 'second'));
    await symlink('.', join(folder, 'vlan'));
    expect(await isFound('bridge', 'first', 'vlan')).to.equal(false);
  });

  it('cannot be checked in a directory that does not exist or cannot be entered', async () => {
    await writeFile(join(folder, 'file'), '');
    const missing = await findMissingPlugins({ path: join(folder, 'absent'), hostPath: HOST_PATH }, [['bridge']]);
    expect(missing).to.deep.equal([['bridge']]);
  });
});
