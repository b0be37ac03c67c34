import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { findShellcheck } from './shellcheck.js';
import { ROOT, findFiles } from '../source-files.js';

describe('the shell scripts', () => {
  let scripts: string[] = [];

  before(async () => {
    scripts = ['.ci/run', ...(await findFiles('.sh'))];
  });

  function check(command: string, args: string[], script: string): void {
    const { status, stdout, stderr } = spawnSync(command, [...args, script], { cwd: ROOT, encoding: 'utf8' });
    expect(status, `${script}\n${stdout}${stderr}`).to.equal(0);
  }

  it('can be executed', () => {
    for (const script of scripts) accessSync(join(ROOT, script), constants.X_OK);
  });

  it('are bash', () => {
    for (const script of scripts) check('bash', ['-n'], script);
  });

  it('are clean for shellcheck', function () {
    this.timeout(120_000); // the first run downloads it
    const shellcheck = findShellcheck();
    for (const script of scripts) check(shellcheck, ['--external-sources', '--source-path=SCRIPTDIR'], script);
  });

  it('are rejected by shellcheck if a variable is not quoted', () => {
    const { status, stdout } = spawnSync(findShellcheck(), ['-'], {
      input: '#!/bin/bash\nrm -r $1\n',
      encoding: 'utf8',
    });
    expect(status).to.equal(1);
    expect(stdout).to.include('SC2086');
  });
});
