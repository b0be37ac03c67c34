import { execFileSync } from 'node:child_process';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { expect } from 'chai';
import { type ArchivedFile, tarOf } from './tar.js';

describe('an archive', () => {
  async function unpacked(...files: ArchivedFile[]): Promise<{ list: string[]; content: string }> {
    const bytes = await buffer(Readable.from(tarOf('folder', Readable.from(files), 1_900_000_000)));
    const run = (...args: string[]) => execFileSync('tar', [...args, '--file', '-'], { input: bytes }).toString();
    return { list: run('--list').trim().split('\n'), content: run('--extract', '--to-stdout') };
  }

  it('has files of any length', async () => {
    const texts = ['', 'a', 'b'.repeat(512), 'ü'.repeat(700)];
    const files = texts.map((content, index) => ({ path: [String(index)], text: content }));
    const { list, content } = await unpacked(...files);
    expect(list).to.deep.equal(['folder/0', 'folder/1', 'folder/2', 'folder/3']);
    expect(content).to.equal(texts.join(''));
  });

  it('writes only below its folder, even if names lead elsewhere', async () => {
    const names = ['..', '/etc/passwd', '.ssh', 'a\nb', 'é'];
    const { list } = await unpacked(...names.map((name) => ({ path: ['x', name], text: '' })));
    expect(list).to.deep.equal(['folder/x/_', 'folder/x/_etc_passwd', 'folder/x/_ssh', 'folder/x/a_b', 'folder/x/_']);
  });

  it('keeps long names apart', async () => {
    const long = 'n'.repeat(250);
    const { list } = await unpacked(...['a', 'b'].map((end) => ({ path: [long, long, `${long}${end}`], text: '' })));
    expect(new Set(list).size).to.equal(2);
    for (const path of list) expect(path).to.match(/^folder\/n{39}-/);
  });
});
