import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect } from 'chai';

const run = promisify(execFile);
/** They create network namespaces. */
const CAN_RUN = process.platform === 'linux' && process.getuid?.() === 0;

(CAN_RUN ? describe : describe.skip)('the guard of the CNI plugin', () => {
  it('passes its Go tests, which send frames through the rules in network namespaces', async function () {
    this.timeout(300_000); // the first time it is compiled
    const { stdout } = await run('go', ['test', '-v', './...'], {
      cwd: import.meta.dirname,
      env: { ...process.env, CGO_ENABLED: '0', GOWORK: 'off' },
    });
    expect(stdout).to.match(/^ok\s+holdfast\.dev\/cni\/plugin\s/m);
    if (stdout.includes('--- SKIP')) this.skip();
  });
});
