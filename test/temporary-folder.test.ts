import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { expect } from 'chai';
import { makeTemporaryFolder, removeTemporaryFolder } from './temporary-folder.js';

describe('A temporary folder', () => {
  it('is removed when its process ends, also without being told', () => {
    const script = `const { makeTemporaryFolder } = await import('./test/temporary-folder.ts');
      process.stdout.write(await makeTemporaryFolder('holdfast-test-'));
      process.exit();`;
    const { stdout } = spawnSync(process.execPath, ['--import=tsx', '--input-type=module', '--eval', script]);
    expect(String(stdout)).to.match(/holdfast-test-\w{6}$/);
    expect(existsSync(String(stdout))).to.equal(false);
  });

  it('is removed before, when it is not needed any more', async () => {
    const folder = await makeTemporaryFolder('holdfast-test-');
    await removeTemporaryFolder(folder);
    expect(existsSync(folder)).to.equal(false);
  });
});
