import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'chai';
import { applyEdits } from './edits.js';

describe('The edits of the tests of kubevirt/ipam-extensions', () => {
  let folder: string;
  beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'holdfast-edits-'))));
  afterEach(() => rm(folder, { recursive: true }));

  const edit = { why: 'it is a test', file: 'a.go', from: 'old', to: 'new' };

  it('replace their text', async () => {
    await writeFile(join(folder, 'a.go'), 'one old line');
    await applyEdits(folder, [edit]);
    expect(await readFile(join(folder, 'a.go'), 'utf8')).to.equal('one new line');
  });

  for (const text of ['nothing', 'old and old']) {
    it(`fail if the text occurs not exactly once: ${text}`, async () => {
      await writeFile(join(folder, 'a.go'), text);
      const failure = await applyEdits(folder, [edit]).catch((error: unknown) => error);
      expect(String(failure)).to.match(/a\.go has [02] times, and not once, the text "old"/);
    });
  }
});
