import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { capture } from '../processes/processes.js';
import { missingHistory } from './release.js';

describe('The commit of the previous release', () => {
  let folder = '';
  let first = '';
  const at = (name: string) => join(folder, name);
  const git = (name: string, ...args: string[]) => {
    const author = ['-c', 'user.name=A', '-c', 'user.email=a@example.com'];
    return capture('git', [...author, ...args], { cwd: at(name) });
  };

  before('create a repository with two commits', async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-release-'));
    await capture('git', ['init', '--quiet', at('whole')]);
    for (const text of ['first', 'second']) {
      await writeFile(at('whole/file'), text);
      await git('whole', 'add', '.');
      await git('whole', 'commit', '--quiet', `--message=${text}`);
    }
    first = (await git('whole', 'rev-parse', 'HEAD~')).trim();
  });

  after('remove it', () => rm(folder, { recursive: true }));

  it('is found in a clone with its history', async () => {
    expect(await missingHistory(first, at('whole'))).to.equal(undefined);
  });

  it('is missing in a shallow clone, and the reason says how to fetch it', async () => {
    await capture('git', ['clone', '--quiet', '--depth=1', `file://${at('whole')}`, at('shallow')]);
    expect(await missingHistory(first, at('shallow')))
      .to.include(first)
      .and.include('git fetch --unshallow');
  });

  it('is missing in an unpacked archive, and the reason says so', async () => {
    expect(await missingHistory(first, folder)).to.include('no git repository');
  });

  it('is missing in another repository, and the reason says where it is named', async () => {
    const reason = await missingHistory('0123456789012345678901234567890123456789', at('whole'));
    expect(reason).to.include('release.ts');
  });
});
