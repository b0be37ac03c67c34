import { spawnSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { ROOT, findFiles } from './source-files.js';

const SHELLCHECK = spawnSync('shellcheck', ['--version']).status === 0;

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

  it(SHELLCHECK ? 'are clean for shellcheck' : 'would be shown to shellcheck, if it were installed', () => {
    if (SHELLCHECK) for (const script of scripts) check('shellcheck', [], script);
  });
});
