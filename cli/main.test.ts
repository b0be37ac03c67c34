import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';

describe('kubectl holdfast as a process', function () {
  this.timeout(60_000);

  it('succeeds if the reader of its output stops early, as head does', async () => {
    const main = join(import.meta.dirname, 'main.ts');
    const child = spawn(process.execPath, ['--import=tsx', main, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.destroy();
    const [errors, [code]] = await Promise.all([text(child.stderr), once(child, 'exit') as Promise<[number]>]);
    expect(errors).to.equal('');
    expect(code).to.equal(0);
  });
});
